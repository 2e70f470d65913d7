/** Event logs by ranges of blocks. */
import type { Log, Provider } from 'ethers'

export interface LogFilter {
  readonly address: string[]
  readonly topics: (string | string[])[]
}

/** Blocks per query at most, unless the caller chooses. */
const RANGE = 10_000

/**
 * All logs of the blocks from `from` to `to`. Nodes limit queries with errors of their own, so a failed query halves
 * the range. Throws the node's error if a single block fails.
 */
export async function logsOf(
  provider: Pick<Provider, 'getLogs'>,
  { address, topics }: LogFilter,
  from: number,
  to: number,
  range = RANGE,
): Promise<readonly Log[]> {
  const logs: Log[] = []
  for (let next = from; next <= to; ) {
    const toBlock = Math.min(next + range - 1, to)
    try {
      logs.push(...(await provider.getLogs({ address, topics, fromBlock: next, toBlock })))
      next = toBlock + 1
    } catch (error) {
      if (toBlock === next) throw error
      range = Math.ceil((toBlock - next + 1) / 2)
    }
  }
  return logs
}
