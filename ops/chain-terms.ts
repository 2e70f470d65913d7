/** A market's parameters, mode and announced changes, read from its contract. */
import type { Provider } from 'ethers'
import type { ChainTerms } from '../domain/market/changes.ts'
import type { Closing } from '../domain/risk/ending.ts'
import type { Millis } from '../domain/units.ts'
import { modeOf, parametersOf } from '../indexer/ingest/decode/parameters.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'

export interface ChainState {
  readonly terms: ChainTerms
  readonly closing: Closing
  readonly disputeWindow: number
  readonly lastActionId: number
  /** Time of the latest block. */
  readonly blockTime: Millis
}

const millis = (value: bigint): Millis => Number(value) as Millis

export async function readChainState(provider: Provider, trader: string): Promise<ChainState> {
  const market = IsolatedTrader__factory.connect(trader, { provider })
  const block = await provider.getBlock('latest')
  const at = { blockTag: block?.number ?? 'latest' }
  const [current, pending, ending, clock] = [
    await market.parameters(at),
    await market.pendingChange(at),
    await market.ending(at),
    await market.clock(at),
  ]
  const modeChange = (mode: bigint, from: bigint) =>
    from === 0n ? null : { mode: modeOf(mode), activeFrom: millis(from) }
  return {
    terms: {
      parameters: parametersOf(current),
      mode: modeOf(current.mode),
      pending: {
        parameters:
          pending.parametersFrom === 0n
            ? null
            : { parameters: parametersOf(pending.parameters), activeFrom: millis(pending.parametersFrom) },
        mode: modeChange(pending.mode, pending.modeFrom),
        restriction: modeChange(pending.restriction, pending.restrictionFrom),
      },
    },
    closing: { expiresAt: millis(ending.expiresAt), settlingAt: millis(ending.settlingAt) },
    disputeWindow: Number(ending.disputeWindow),
    lastActionId: Number(clock.actionId),
    blockTime: ((block?.timestamp ?? 0) * 1000) as Millis,
  }
}
