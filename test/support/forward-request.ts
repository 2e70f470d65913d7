/** Forward requests signed with ethers: independent of the exchange's own hashing. */
import { TypedDataEncoder, type Wallet } from 'ethers'
import { FORWARD_REQUEST, forwardDomainOf } from '../contracts/support/forward.ts'

export interface TypedRequest {
  readonly from: string
  readonly to: string
  readonly value: number
  readonly gas: number
  readonly nonce: number
  readonly deadline: number
  readonly data: string
}

const CHAIN_ID = 6343n
const TYPES = { ForwardRequest: FORWARD_REQUEST }

export const digestOfForward = (request: TypedRequest, forwarder: string): string =>
  TypedDataEncoder.hash(forwardDomainOf(CHAIN_ID, forwarder), TYPES, request)

export const signForward = (wallet: Wallet, request: TypedRequest, forwarder: string): Promise<string> =>
  wallet.signTypedData(forwardDomainOf(CHAIN_ID, forwarder), TYPES, request)
