/** Takes a test chain back to an earlier state. */
import type { JsonRpcProvider, NonceManager } from 'ethers'

interface TestChain {
  readonly provider: JsonRpcProvider
  readonly admin: NonceManager
}

/** Two snapshots of the same state. `number`: a block that the chain has then. */
export interface SavedChain {
  readonly number: number
  readonly snapshots: readonly [string, string]
}

export async function saveChain({ provider }: TestChain): Promise<SavedChain> {
  const first = await provider.send('evm_snapshot', [])
  const second = await provider.send('evm_snapshot', [])
  return { number: await provider.getBlockNumber(), snapshots: [first, second] }
}

/**
 * Forgets everything since the state was saved. A block that anvil mines while it goes back keeps its old number: the blocks before it are missing then,
 * and it has to go back once more.
 */
export async function restoreChain(
  chain: TestChain,
  { number, snapshots: [first, second] }: SavedChain,
): Promise<void> {
  const { provider } = chain
  await goBack(chain, second)
  const head = await provider.getBlockNumber()
  const has = async (block: number): Promise<boolean> =>
    block > head || (await provider.getBlock(block)) !== null
  if (!(await has(number)) || !(await has(number + 1))) await goBack(chain, first)
}

/** The node would take its clock back as well, and an auction is as of its latest block. */
async function goBack({ provider, admin }: TestChain, snapshot: string): Promise<void> {
  await provider.send('evm_revert', [snapshot])
  admin.reset()
  const { timestamp } = (await provider.getBlock('latest')) as { timestamp: number }
  const behind = Math.floor(Date.now() / 1000) - timestamp
  if (behind > 0) await provider.send('evm_increaseTime', [behind])
  await provider.send('evm_mine', [])
}
