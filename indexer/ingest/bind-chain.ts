/** The chain to which a database belongs. */
import { type Genesis, insertProgress } from '../../db/chain.ts'
import type { Db } from '../../db/client.ts'

/** The database belongs to another chain than the node, so nothing of this chain may be written to it. */
export class OtherChainError extends Error {
  override readonly name = 'OtherChainError'
}

/** Binds the database to the chain at the first start. Throws OtherChainError for any other chain afterwards. */
export async function bindChain(db: Db, genesis: Genesis, startBlock: number): Promise<void> {
  await insertProgress(db, genesis, startBlock)
  const chains = await db.selectFrom('chain_progress').select(['chain_id', 'genesis_hash']).execute()
  const other = chains.find(
    ({ chain_id, genesis_hash }) => chain_id !== genesis.chainId || genesis_hash !== genesis.hash,
  )
  if (other === undefined) return
  throw new OtherChainError(
    `this database follows chain ${other.chain_id} with genesis ${other.genesis_hash}, but the node is on chain ` +
      `${genesis.chainId} with genesis ${genesis.hash}: use that chain's node, or an empty database`,
  )
}
