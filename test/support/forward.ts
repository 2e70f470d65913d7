/** Requests that an owner signs and somebody else sends. */
import type { Signer } from 'ethers'
import { Forwarder__factory } from '../../typechain-types/factories/Forwarder__factory.ts'
import type { Exchange } from './exchange.ts'

const FIELDS = [
  'from address',
  'to address',
  'value uint256',
  'gas uint256',
  'nonce uint256',
  'deadline uint48',
  'data bytes',
]
const ForwardRequest = FIELDS.map((field) => ({
  name: field.split(' ')[0] as string,
  type: field.split(' ')[1] as string,
}))

type SignerWithAddress = Signer & { readonly address: string }

export const forwarderOf = ({ shared, admin }: Exchange) =>
  Forwarder__factory.connect(shared.forwarder, admin)

/** A request of `from` that lives ten minutes, signed by him, or by another in his place. */
export async function signForward(
  exchange: Exchange,
  from: SignerWithAddress,
  call: { readonly to: string; readonly data: string },
  signer: SignerWithAddress = from,
) {
  const { shared, spec, connection } = exchange
  const domain = {
    name: 'Forwarder',
    version: '1',
    chainId: spec.chainId,
    verifyingContract: shared.forwarder,
  }
  const nonce = await forwarderOf(exchange).nonces(from.address)
  const deadline = (await connection.networkHelpers.time.latest()) + 600
  const request = { from: from.address, value: 0, gas: 300_000, nonce, deadline, ...call }
  return { ...request, signature: await signer.signTypedData(domain, { ForwardRequest }, request) }
}
