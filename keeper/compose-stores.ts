/** The stores of the keeper's lanes: reads from the tables, changes by the engine. */
import { createAdjustmentStore } from './adjustments/store.ts'
import { createFinalizations } from './ending/finalizations.ts'
import { createFaucetStore } from './faucet/store.ts'
import type { EngineParts } from './relayer/bytes-store.ts'
import { createRelayerStore } from './relayer/store.ts'
import { createRelayStore } from './relays/store.ts'
import { createRequeueStore, createSettlementStore, createVoids } from './settlement/store.ts'

export const createStores = (parts: EngineParts) => ({
  relayers: createRelayerStore(parts),
  settlement: createSettlementStore(parts),
  voids: createVoids(parts),
  requeues: createRequeueStore(parts),
  adjustments: createAdjustmentStore(parts),
  relays: createRelayStore(parts),
  faucet: createFaucetStore(parts),
  finalizations: createFinalizations(parts),
})

export type WorkerStores = ReturnType<typeof createStores>
