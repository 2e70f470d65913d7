/** Signs requests that the exchange relays for the owner, as typed data of the forwarder. */
import { missingOption } from './account.ts'
import type { Signer } from './signers/signer.ts'

/** As `prepare` returns it. */
export interface ForwardRequest {
  readonly from: string
  readonly to: string
  readonly gas: number
  readonly nonce: number
  readonly deadline: number
  readonly data: string
}

export interface ForwarderDomain {
  readonly chain_id: number
  readonly forwarder_address: string
}

const TYPES = {
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

/** The value is always 0. */
export async function signForwardRequest(
  owner: Signer,
  { from, to, gas, nonce, deadline, data }: ForwardRequest,
  { chain_id, forwarder_address }: ForwarderDomain,
): Promise<string> {
  if (owner.signTypedData === undefined) return missingOption('signer with signTypedData')
  return owner.signTypedData({
    domain: { name: 'Forwarder', version: '1', chainId: chain_id, verifyingContract: forwarder_address },
    primaryType: 'ForwardRequest',
    types: TYPES,
    message: { from, to, value: 0, gas, nonce, deadline, data },
  })
}
