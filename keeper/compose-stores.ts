/** The stores of the keeper's jobs: on the tables of the write side, or with the engine as their writer. */
import type { Db } from '../db/client.ts'
import type { Clock } from '../service/clock.ts'
import { createActionQueue } from './actions/store.ts'
import { createEngineAdjustmentStore } from './adjustments/engine-store.ts'
import type { AdjustmentStore } from './adjustments/ports.ts'
import { createAdjustmentStore } from './adjustments/store.ts'
import { createEngineFinalizations } from './ending/engine-store.ts'
import { finalizeThrough } from './ending/finalizations.ts'
import type { Finalizations } from './ending/ports.ts'
import type { Engine } from './engine/link/engine.ts'
import { createEngineFaucetStore } from './faucet/engine-store.ts'
import type { FaucetStore } from './faucet/ports.ts'
import { createFaucetStore } from './faucet/store.ts'
import { createEngineRelayerStore } from './relayer/engine-store.ts'
import type { RelayerStore } from './relayer/ports.ts'
import { createRelayerStore } from './relayer/store.ts'
import { createEngineRelayStore } from './relays/engine-store.ts'
import type { RelayStore } from './relays/ports.ts'
import { createRelayStore } from './relays/store.ts'
import {
  createEngineRequeueStore,
  createEngineSettlementStore,
  createEngineVoids,
} from './settlement/engine-store.ts'
import { createVoids } from './settlement/plan-voids.ts'
import type { RequeueStore, SettlementStore, Voids } from './settlement/ports.ts'
import { createRequeueStore } from './settlement/requeue-store.ts'
import { createSettlementStore } from './settlement/store.ts'
import { createVoidStore } from './settlement/void-store.ts'

export interface WorkerStores {
  readonly relayers: RelayerStore
  readonly settlement: SettlementStore
  readonly voids: Voids
  readonly requeues: RequeueStore
  readonly adjustments: AdjustmentStore
  readonly relays: RelayStore
  readonly faucet: FaucetStore
  readonly finalizations: Finalizations
}

export const createTableStores = (db: Db, clock: Clock): WorkerStores => ({
  relayers: createRelayerStore(db),
  settlement: createSettlementStore(db),
  voids: createVoids(createVoidStore(db)),
  requeues: createRequeueStore(db),
  adjustments: createAdjustmentStore(db),
  relays: createRelayStore(db, clock),
  faucet: createFaucetStore(db),
  finalizations: finalizeThrough(createActionQueue(db)),
})

export function createEngineStores(db: Db, engine: Engine): WorkerStores {
  const parts = { db, engine }
  return {
    relayers: createEngineRelayerStore(parts),
    settlement: createEngineSettlementStore(parts),
    voids: createEngineVoids(parts),
    requeues: createEngineRequeueStore(parts),
    adjustments: createEngineAdjustmentStore(parts),
    relays: createEngineRelayStore(parts),
    faucet: createEngineFaucetStore(parts),
    finalizations: createEngineFinalizations(parts),
  }
}
