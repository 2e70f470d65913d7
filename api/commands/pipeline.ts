/** The command pipeline: the only entry for commands that change orders. Counts each command by its result. */
import type { Db } from '../../db/client.ts'
import { pruneRequests } from '../../db/client-requests.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { ArrivalTimes } from '../arrival-times.ts'
import type { Caller } from '../auth/caller.ts'
import type { Config } from '../config.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { Metrics } from '../metrics.ts'
import type {
  CancelAllAnswer,
  CancelBatchAnswer,
  CancelBatchBody,
  PlaceBatchBody,
} from '../order-entry/batch-schema.ts'
import type { ReplaceAnswer, ReplaceBatchBody, ReplaceBody } from '../order-entry/replace-schema.ts'
import type {
  CancelAnswer,
  ClosePositionAnswer,
  ClosePositionBody,
  PlaceOrderAnswer,
  PlaceOrderBody,
} from '../order-entry/schema.ts'
import type { ValidateAnswer, ValidateBody } from '../order-entry/validation-schema.ts'
import type { RecoverSigners } from '../ports.ts'
import { type Arrival, createArrivingPlacements } from './arriving-placements.ts'
import { createFindBySalt } from './command-identity.ts'
import { createDispatcher } from './dispatcher.ts'
import { type CommandLogger, createEarlierAttempts } from './earlier-attempts.ts'
import { createOrderMarketIndex } from './order-market-index.ts'
import { createPlacementLimit } from './placement-limit.ts'
import { createSettled } from './settled-commands.ts'
import type { ShardEpochs } from './shard-epochs.ts'
import { createFindOrders, createFindOrdersById } from './stored-orders.ts'
import { cancelAll, cancelBatch } from './submit-cancels.ts'
import { closePosition } from './submit-close.ts'
import { placeBatch, type WrittenAnswer } from './submit-placements.ts'
import { replaceBatch, replaceOrder } from './submit-replacements.ts'
import { cancelLabelled, cancelOrder, placeOrder } from './submit-single.ts'
import type { TableProgress } from './table-progress.ts'
import { validateOrder } from './validate-order.ts'
import { createVerifier } from './verify-signature.ts'

export interface CommandPipeline {
  /**
   * Announces a placement before its limits are checked, so that later cancels wait for it. The caller ends it with
   * `answered`.
   */
  arrive(caller: Caller): Arrival
  place(caller: Caller, body: PlaceOrderBody, arrival?: Arrival): Promise<PlaceOrderAnswer>
  /** Places a reduce-only market order. */
  close(caller: Caller, body: ClosePositionBody, arrival?: Arrival): Promise<ClosePositionAnswer>
  /** A dry run of the placement. */
  validate(caller: Caller, body: ValidateBody): Promise<ValidateAnswer>
  placeBatch(caller: Caller, body: PlaceBatchBody, arrival?: Arrival): Promise<WrittenAnswer>
  replace(caller: Caller, body: ReplaceBody, arrival?: Arrival): Promise<ReplaceAnswer>
  replaceBatch(caller: Caller, body: ReplaceBatchBody, arrival?: Arrival): Promise<WrittenAnswer>
  cancel(caller: Caller, hash: string, reason: string | null): Promise<CancelAnswer>
  cancelLabelled(caller: Caller, clientOrderId: string, reason: string | null): Promise<CancelAnswer>
  cancelBatch(caller: Caller, body: CancelBatchBody, reason: string | null): Promise<CancelBatchAnswer>
  /** `marketId` null cancels in all markets. */
  cancelAll(caller: Caller, marketId: number | null, reason: string | null): Promise<CancelAllAnswer>
  /** Rejects new commands; resolves when all accepted commands are answered. */
  stop(): Promise<void>
}

export interface CommandPipelinePorts {
  readonly db: Db
  readonly clock: Clock
  readonly epochs: ShardEpochs
  readonly killPoint: KillPointHook<'after-placement-commit' | 'after-request-commit'>
  readonly markets: MarketDirectory
  readonly metrics: Metrics
  readonly recoverSigners: RecoverSigners
  readonly logger: CommandLogger
  readonly engine: EngineCalls
  readonly requests: Pick<ArrivalTimes, 'traceId'>
  readonly tables: TableProgress
}

export type CommandPipelineOptions = Pick<
  Config,
  | 'maxQueue'
  | 'placementTargetMs'
  | 'commandTimeoutMs'
  | 'requestRetentionHours'
  | 'requestsKept'
  | 'signatureExplanations'
>

/** Cancels of unknown orders within this time share one barrier. */
const JOIN_MS = 2

/** Refused items within this time share one lookup of their earlier attempts. */
const REFUSALS_JOIN_MS = 25

/** Concurrent orders that an API process always accepts, however slow their answers are. */
const LEAST_PLACEMENTS = 32

const PRUNE_INTERVAL_MS = 60_000
const HOUR_MS = 3_600_000

/** Prunes stored answers periodically. Returns a function that stops it. */
function startPruning(
  { db, clock, logger }: CommandPipelinePorts,
  { requestRetentionHours, requestsKept }: CommandPipelineOptions,
): () => void {
  const prune = (): void => {
    const before = clock.now() - requestRetentionHours * HOUR_MS
    pruneRequests(db, { before, most: requestsKept }).catch((err) =>
      logger.warn({ err }, 'failed to prune expired client requests; will retry'),
    )
  }
  const timer = setInterval(prune, PRUNE_INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}

export function createCommandPipeline(
  parts: CommandPipelinePorts,
  options: CommandPipelineOptions,
): CommandPipeline {
  const { db, markets, metrics, tables } = parts
  const lookUps = {
    findBySalt: createFindBySalt(db),
    findOrders: createFindOrders(db, tables),
    findOrdersById: createFindOrdersById(db, tables),
    epochs: parts.epochs,
  }
  const dispatcher = createDispatcher({ ...parts, ...lookUps }, options)
  const arrivals = createArrivingPlacements()
  const ports = {
    db,
    arrivals,
    dispatcher,
    tables,
    settled: createSettled(parts.engine, JOIN_MS),
    attempts: createEarlierAttempts(parts.logger, createSettled(parts.engine, REFUSALS_JOIN_MS)),
    ...lookUps,
    orderMarkets: createOrderMarketIndex(db),
    markets,
    clock: parts.clock,
    logger: parts.logger,
    commandTimeoutMs: options.commandTimeoutMs,
    verifier: createVerifier(parts, { explanations: options.signatureExplanations }),
  }
  const stopPruning = startPruning(parts, options)

  const limit = createPlacementLimit({
    targetMs: options.placementTargetMs,
    least: LEAST_PLACEMENTS,
    most: options.maxQueue,
  })
  metrics.gauge('api_placement_bound', () => limit.bound)
  /** Refuses over the limit before the orders cost anything. An earlier attempt may have placed them. */
  async function limited<Value>(orders: number, work: () => Promise<Value>): Promise<Value> {
    if (!limit.enter(orders)) throw new ApiError('OVERLOADED', {}, '1').beforeReading()
    const enteredAt = performance.now()
    try {
      return await work()
    } finally {
      const now = performance.now()
      limit.leave(orders, now - enteredAt, now)
    }
  }

  const open = new Set<Promise<unknown>>()
  const counted = async <Value>(kind: string, work: Promise<Value>): Promise<Value> => {
    open.add(work)
    try {
      const value = await work
      metrics.command(kind, 'accepted')
      return value
    } catch (error) {
      metrics.command(kind, error instanceof ApiError ? error.code : 'INTERNAL')
      throw error
    } finally {
      open.delete(work)
    }
  }
  return {
    arrive: ({ userId }) => arrivals.begin(userId),
    place: (caller, body, arrival = arrivals.begin(caller.userId)) =>
      counted('place', limited(1, () => placeOrder(ports, caller, body, arrival)).finally(arrival.answered)),
    close: (caller, body, arrival = arrivals.begin(caller.userId)) =>
      counted(
        'close',
        limited(1, () => closePosition(ports, caller, body, arrival)).finally(arrival.answered),
      ),
    validate: (caller, body) => validateOrder(ports, caller, body),
    placeBatch: (caller, body, arrival = arrivals.begin(caller.userId)) =>
      counted(
        'place_batch',
        limited(body.orders.length, () => placeBatch(ports, caller, body, arrival)).finally(arrival.answered),
      ),
    replace: (caller, body, arrival = arrivals.begin(caller.userId)) =>
      counted(
        'replace',
        limited(1, () => replaceOrder(ports, caller, body, arrival)).finally(arrival.answered),
      ),
    replaceBatch: (caller, body, arrival = arrivals.begin(caller.userId)) =>
      counted(
        'replace_batch',
        limited(body.orders.length, () => replaceBatch(ports, caller, body, arrival)).finally(
          arrival.answered,
        ),
      ),
    cancel: (caller, hash, reason) => counted('cancel', cancelOrder(ports, caller, { hash, reason })),
    cancelLabelled: (caller, clientOrderId, reason) =>
      counted('cancel', cancelLabelled(ports, caller, { clientOrderId, reason })),
    cancelBatch: (caller, body, reason) => counted('cancel_batch', cancelBatch(ports, caller, body, reason)),
    cancelAll: (caller, marketId, reason) =>
      counted('cancel_all', cancelAll(ports, caller, { marketId, reason })),
    async stop() {
      stopPruning()
      await dispatcher.stop()
      // Answers to executed commands still read from the database.
      await Promise.allSettled(open)
    },
  }
}
