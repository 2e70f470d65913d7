/** Everything that changes orders, for the routes: each command counted by what became of it. */
import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import type { Caller } from '../auth/caller.ts'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { Metrics } from '../metrics.ts'
import type {
  CancelAllAnswer,
  CancelBatchAnswer,
  CancelBatchBody,
  PlaceBatchBody,
} from '../order-entry/batch-schema.ts'
import type { CancelAnswer, PlaceOrderAnswer, PlaceOrderBody } from '../order-entry/schema.ts'
import type { ValidateAnswer, ValidateBody } from '../order-entry/validation-schema.ts'
import type { Clock, Reached, RecoverSigners } from '../ports.ts'
import { sweepRequests } from './client-requests.ts'
import { createCommandQueues } from './command-dispatcher.ts'
import type { GroupLog } from './group.ts'
import { createHashIndex } from './order-market-index.ts'
import { cancelAll, cancelBatch } from './submit-cancels.ts'
import { type JsonText, placeBatch } from './submit-placements.ts'
import { cancelOrder, placeOrder } from './submit-single.ts'
import { validateOrder } from './validate-order.ts'
import { createVerifier } from './verify-signature.ts'

export interface Intake {
  place(caller: Caller, body: PlaceOrderBody): Promise<PlaceOrderAnswer>
  /** What would become of the placement; nothing happens. */
  validate(caller: Caller, body: ValidateBody): Promise<ValidateAnswer>
  placeBatch(caller: Caller, body: PlaceBatchBody): Promise<JsonText>
  cancel(caller: Caller, hash: string, reason: string | null): Promise<CancelAnswer>
  cancelBatch(caller: Caller, body: CancelBatchBody, reason: string | null): Promise<CancelBatchAnswer>
  /** In one market, or in all. */
  cancelAll(caller: Caller, marketId: number | null, reason: string | null): Promise<CancelAllAnswer>
  /** Takes nothing more, and resolves when everything taken is answered. */
  stop(): Promise<void>
}

export interface IntakeParts {
  /** For the groups alone: a read must never wait for, or hold up, a placement. */
  readonly pool: pg.Pool
  readonly trials: pg.Pool
  readonly db: Db
  readonly clock: Clock
  readonly reached: Reached
  readonly markets: MarketDirectory
  readonly metrics: Metrics
  readonly recoverSigners: RecoverSigners
  readonly log: GroupLog
}

export type IntakeOptions = Pick<
  Config,
  | 'chainId'
  | 'oracleMaxAgeMs'
  | 'chainMaxAgeMs'
  | 'maxGroup'
  | 'maxQueue'
  | 'commandTimeoutMs'
  | 'requestRetentionHours'
  | 'requestsKept'
  | 'signatureExplanations'
>

const SWEEP_MS = 60_000
const HOUR_MS = 3_600_000

/** Forgets old answers for as long as the process runs. */
function startSweeping(
  { db, clock, log }: IntakeParts,
  { requestRetentionHours, requestsKept }: IntakeOptions,
): () => void {
  const sweep = (): void => {
    const before = clock.now() - requestRetentionHours * HOUR_MS
    sweepRequests(db, { before, most: requestsKept }).catch((err) =>
      log.warn({ err }, 'old client requests stay for now'),
    )
  }
  const timer = setInterval(sweep, SWEEP_MS)
  timer.unref()
  return () => clearInterval(timer)
}

export function createIntake(parts: IntakeParts, options: IntakeOptions): Intake {
  const { db, markets, metrics } = parts
  const lanes = createCommandQueues(parts, options)
  const ports = {
    db,
    lanes,
    hashes: createHashIndex(db),
    markets,
    verifier: createVerifier(parts, { explanations: options.signatureExplanations }),
  }
  const stopSweeping = startSweeping(parts, options)

  const counted = async <Value>(kind: string, work: Promise<Value>): Promise<Value> => {
    try {
      const value = await work
      metrics.command(kind, 'accepted')
      return value
    } catch (error) {
      metrics.command(kind, error instanceof ApiError ? error.code : 'INTERNAL')
      throw error
    }
  }
  return {
    place: (caller, body) => counted('place', placeOrder(ports, caller, body)),
    validate: (caller, body) => validateOrder({ ...parts, ...ports }, options, caller, body),
    placeBatch: (caller, body) => counted('place_batch', placeBatch(ports, caller, body)),
    cancel: (caller, hash, reason) => counted('cancel', cancelOrder(ports, caller, { hash, reason })),
    cancelBatch: (caller, body, reason) => counted('cancel_batch', cancelBatch(ports, caller, body, reason)),
    cancelAll: (caller, marketId, reason) =>
      counted('cancel_all', cancelAll(ports, caller, { marketId, reason })),
    async stop() {
      stopSweeping()
      await lanes.stop()
    },
  }
}
