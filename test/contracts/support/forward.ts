/** Forward requests: signed by an owner, sent by another account. */
import type { Signer } from 'ethers'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import type { Exchange } from '../../support/exchange.ts'

/** OpenZeppelin's typed data. */
export const FORWARD_REQUEST = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'gas', type: 'uint256' },
  { name: 'nonce', type: 'uint256' },
  { name: 'deadline', type: 'uint48' },
  { name: 'data', type: 'bytes' },
]

export const forwardDomainOf = (chainId: bigint, forwarder: string) => ({
  name: 'Forwarder',
  version: '1',
  chainId: `${chainId}`,
  verifyingContract: forwarder,
})

type SignerWithAddress = Signer & { readonly address: string }

export const forwarderOf = ({ shared, admin }: Exchange) =>
  Forwarder__factory.connect(shared.forwarder, admin)

/** A request of `from` valid for ten minutes, signed by `from` or, for negative tests, by `signer`. */
export async function signForward(
  exchange: Exchange,
  from: SignerWithAddress,
  call: { readonly to: string; readonly data: string; readonly gas?: bigint; readonly nonce?: bigint },
  signer: SignerWithAddress = from,
) {
  const { shared, spec, connection } = exchange
  const domain = forwardDomainOf(spec.chainId, shared.forwarder)
  const nonce = await forwarderOf(exchange).nonces(from.address)
  const deadline = (await connection.networkHelpers.time.latest()) + 600
  const request = { from: from.address, value: 0, gas: 300_000, nonce, deadline, ...call }
  return {
    ...request,
    signature: await signer.signTypedData(domain, { ForwardRequest: FORWARD_REQUEST }, request),
  }
}
