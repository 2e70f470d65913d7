/** The member with its machine: the state, the facts of clients, and the commands that the owner gives itself. */

import type pg from 'pg'
import type { Entry } from '../../domain/exchange/apply.ts'
import { specOf } from '../../domain/exchange/decide/turn/snapshot.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { hashOrder } from '../../domain/orders/order-hash.ts'
import type { MarketId } from '../../domain/units.ts'
import { keccak } from '../../service/crypto.ts'
import { killAt } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import { readSpan, type Spans } from '../../service/spans.ts'
import type { Attempts } from './attempts.ts'
import { scheduleCheckpoints } from './checkpoint-schedule.ts'
import type { RecoveredState } from './checkpoints.ts'
import { accountOf, type ExchangeAnswer, type ExchangeCommand, isReadBack } from './commands.ts'
import type { Config } from './config.ts'
import { ConnectionDeadlines } from './connection-deadlines.ts'
import { Exchange } from './exchange.ts'
import { Facts } from './facts.ts'
import { reasonOf } from './follower.ts'
import { handedOver } from './handed-over.ts'
import { killingJournal } from './killing-journal.ts'
import { type Member, startMember } from './member.ts'
import type { EngineMetrics } from './metrics.ts'
import { OrderTraces } from './order-traces.ts'
import type { EngineClock } from './ports.ts'
import { Restoration, type RestorationPorts } from './restoration.ts'
import { EngineSpans } from './spans.ts'
import { createJournal, createLease, createTables } from './store.ts'
import { BatchEvidence } from './tables/batch-evidence.ts'
import { systemTimer } from './timer.ts'
import { type TurnPorts, Turns } from './turns.ts'

export interface CorePorts {
  readonly config: Config
  readonly logger: Logger
  readonly metrics: EngineMetrics
  readonly clock: EngineClock
  readonly pool: pg.Pool
  /** Attempts at commands, whose fences go from owner to owner. */
  readonly attempts: Pick<Attempts, 'inherit' | 'left'>
  /** The stored note of a restore; null if the database was not restored since the chain was last replayed. */
  readonly restored: Pick<RestorationPorts, 'isAwaited' | 'noteDone'> | null
  /** Null: no spans. */
  readonly spans: Spans | null
}

export interface Core {
  readonly member: Member<ExchangeCommand, ExchangeAnswer>
  readonly facts: Facts
  readonly deadlines: ConnectionDeadlines
  readonly isOwner: () => boolean
  /** False for a command that waits until the chain is replayed onto a restored database. */
  readonly allows: (command: ExchangeCommand) => boolean
  /** Token of the ownership; null while the member is not the owner, or hands over. */
  readonly token: () => number | null
  /** Calls `announce` when the member has become the owner, and when it no longer is. */
  onOwner(announce: () => void): void
  /** Rejects when the member has ended without `stop`. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

/** Longest time between two visits of the event loop. */
const TURN_MS = 5
const FOLLOW_MS = 50
/** Bound on the difference between the monotonic clocks of two members over one life of the lease. */
const DRIFT_MS = 200
/** A slice of a block ends before the fact with which it would change more accounts. */
const SLICE_ACCOUNTS = 100
const EMPTY_BLOCKS_MS = 1_000

interface RestorationParts extends Pick<RestorationPorts, 'isAwaited' | 'noteDone' | 'submit' | 'logger'> {
  readonly facts: Facts
}

const restorationOf = ({ markets }: ExchangeState, { facts, ...ports }: RestorationParts): Restoration =>
  new Restoration({
    ...ports,
    markets: () => [...markets.rows()].map(({ market_id }) => market_id as MarketId),
    isChainSeen: facts.isChainSeen,
    timer: systemTimer,
  })

export function startCore(ports: CorePorts, { applied, number }: RecoveredState): Core {
  const { config, logger, metrics, clock, pool, restored, attempts } = ports
  const { state } = applied
  const facts = new Facts(config)
  const deadlines = new ConnectionDeadlines()
  // Debug lines alone need them.
  const traces = ['debug', 'trace'].includes(config.logLevel) ? new OrderTraces() : null
  const spans = ports.spans && new EngineSpans(ports.spans)
  const tables = createTables(pool, state, { logger, onRefused: metrics.rowRefused })
  const evidence = new BatchEvidence()
  const stored = createJournal<Entry>(pool, evidence)
  const journal = config.killAt === null ? stored : killingJournal(stored, killAt(config.killAt))
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {})
  const announcements: (() => void)[] = []
  let turns: Turns | null = null
  let isStopping = false
  let ownToken: number | null = null
  const machine = new Exchange(applied, {
    inputsAt: facts.inputsAt,
    keepInputs: (...batch) => evidence.keep(...batch),
    hashOrder: (order, marketId) => hashOrder(order, specOf(state, marketId), keccak),
    chainRules: {
      confirmations: config.confirmations,
      depth: config.forkDepth,
      sliceAccounts: SLICE_ACCOUNTS,
      emptyBlocksMs: EMPTY_BLOCKS_MS,
    },
  })

  const checkpoints = scheduleCheckpoints(
    { ...config, every: config.checkpointRows, logger },
    applied.position(),
  )

  const submit: TurnPorts['submit'] = (request) =>
    member.submit(request) ?? Promise.resolve({ none: 'not_executed' })

  const restoration = restored && restorationOf(state, { ...restored, submit, facts, logger })

  function own(token: number): void {
    ownToken = token
    if (restoration === null) begin()
    else void restoration.complete().then((isDone) => isDone && ownToken !== null && begin())
    for (const announce of announcements) announce()
  }

  function begin(): void {
    deadlines.restart(state, clock.now())
    turns = new Turns(
      {
        state,
        submit,
        deadlines,
        clock,
        timer: systemTimer,
        logger,
        onTurn: metrics.turnStarted,
      },
      { auctionMs: config.auctionIntervalMs, fundingMs: config.fundingIntervalMs },
    )
  }

  const member = startMember<ExchangeCommand, Entry, ExchangeAnswer>(
    {
      machine,
      journal,
      tables,
      isReadBack,
      clock,
      timer: systemTimer,
      logger,
      observer: {
        ...metrics,
        decided(command, ms, entries, traceId) {
          metrics.decided(command, ms, entries, traceId)
          spans?.decided(command.kind, ms, entries, traceId)
          if (traces === null) return
          const facts = { kind: command.kind, account: accountOf(command), ms, rows: entries.length }
          const logId = traceId === undefined ? undefined : readSpan(traceId).logId
          logger.debug({ ...facts, ...traces.factsOf(entries, logId) }, 'decided')
        },
        stored(commands, rows, ms) {
          metrics.stored(commands, rows, ms)
          spans?.stored(commands, rows, ms)
          checkpoints.reached(applied.position())
        },
      },
      lease: handedOver(createLease(pool), { pool, attempts, logger }),
      onOwner: own,
      onEnd(reason) {
        ownToken = null
        restoration?.stop()
        turns?.stop()
        for (const announce of announcements) announce()
        if (isStopping) return
        logger.error({ reason }, 'this member of the engine has ended')
        failure.reject(
          new Error(`the engine has ended: ${typeof reason === 'string' ? reason : reasonOf(reason)}`),
        )
      },
    },
    {
      turnMs: TURN_MS,
      maxGroup: config.groupCommands,
      followMs: FOLLOW_MS,
      lifeMs: config.leaseMs,
      driftMs: DRIFT_MS,
    },
    { head: number },
  )
  return {
    member,
    facts,
    deadlines,
    isOwner: () => ownToken !== null,
    allows: (command) => restoration?.allows(command) ?? true,
    token: () => (isStopping ? null : ownToken),
    onOwner: (announce) => void announcements.push(announce),
    failed: failure.promise,
    async stop() {
      isStopping = true
      restoration?.stop()
      turns?.stop()
      checkpoints.stop()
      await member.stop()
    },
  }
}
