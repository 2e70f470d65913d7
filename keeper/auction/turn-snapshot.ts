/** The snapshot on which the jobs of a market decide, in one turn, whether they have anything to do. */

import type { MarketSnapshot } from '../../domain/auction/market-snapshot.ts'
import type { LiquidationStore } from '../liquidation/ports.ts'
import type { AuctionStore } from './ports.ts'

interface SnapshotPorts {
  readonly store: AuctionStore
  readonly liquidations: LiquidationStore
}

export interface TurnSnapshot<P extends SnapshotPorts> {
  /** Each snapshot of a turn is the first one, until a transaction of the market discards it. A transaction reads its own. */
  readonly ports: P
  /** Starts a turn: the next snapshot is read. */
  begin(): void
}

export function shareSnapshot<P extends SnapshotPorts>(ports: P): TurnSnapshot<P> {
  let known: Promise<MarketSnapshot> | null = null
  const discard = (): void => {
    known = null
  }
  const snapshot: AuctionStore['snapshot'] = (spec) => {
    known ??= ports.store.snapshot(spec)
    return known
  }
  const { store, liquidations } = ports
  return {
    begin: discard,
    ports: {
      ...ports,
      store: {
        ...store,
        snapshot,
        transaction(...args) {
          discard()
          return store.transaction(...args)
        },
      } satisfies AuctionStore,
      liquidations: {
        ...liquidations,
        snapshot,
        transaction(...args) {
          discard()
          return liquidations.transaction(...args)
        },
      } satisfies LiquidationStore,
    },
  }
}
