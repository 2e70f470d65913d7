/** A payment of test collateral and gas. */
import Type from 'typebox'
import { named, namedInput, words } from '../wire/schema.ts'

export const FaucetBody = namedInput('FaucetBody', {})
export const FaucetAnswer = named('FaucetAnswer', {
  tx_hash: Type.String({
    description: 'Hash of the transaction that mints test USDM and gas to the wallet; it deposits nothing.',
  }),
  request_id: Type.Integer(),
  wallet: Type.String(),
  status: words(['SIGNED', 'MINED'], 'Status of the transaction.'),
})
