/** Forward requests signed with ethers: independent of the exchange's own hashing. */
import { TypedDataEncoder, type Wallet } from 'ethers'

export const FORWARD_REQUEST = {
  ForwardRequest: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'gas', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint48' },
    { name: 'data', type: 'bytes' },
  ],
}

export interface TypedRequest {
  readonly from: string
  readonly to: string
  readonly value: number
  readonly gas: number
  readonly nonce: number
  readonly deadline: number
  readonly data: string
}

const domainOf = (forwarder: string) => ({
  ...{ name: 'Forwarder', version: '1', chainId: 6343 },
  verifyingContract: forwarder,
})

export const digestOfForward = (request: TypedRequest, forwarder: string): string =>
  TypedDataEncoder.hash(domainOf(forwarder), FORWARD_REQUEST, request)

export const signForward = (wallet: Wallet, request: TypedRequest, forwarder: string): Promise<string> =>
  wallet.signTypedData(domainOf(forwarder), FORWARD_REQUEST, request)
