/** Rows of markets, their batches and their action queues. */
import type { ActionKind } from '../../actions/action.ts'
import type { StoredPayload } from '../../actions/stored-action.ts'
import type { EndingTimes, StoredBackstop } from '../../journal/action-rows.ts'
import type { StoredEnd, StoredFinalReport } from '../../journal/ending-rows.ts'
import type { MarketListed, StoredInterval } from '../../journal/journal-row.ts'
import type { Wei } from '../../journal/wei.ts'
import type { StoredFeePeriod } from '../../market/fee-periods.ts'
import type { MarketMode } from '../../market/market.ts'
import type { StoredTerms } from '../../market/stored-terms.ts'
import type { CalendarName } from '../../market/trading-calendar.ts'
import type { BatchStatus } from '../../settlement/settlement.ts'
import type { MarketId, Millis, Price, Rate, Seq, Ticks, UserId } from '../../units.ts'
import { DocumentTable } from '../document-table.ts'
import { count, flag, optionalCount, small, wei } from '../layout.ts'
import { RecordTable } from '../record-table.ts'
import type { StateCore } from '../table.ts'

/** Market settings of operators and of the chain. They change rarely. */
export interface MarketRow extends EndingTimes, StoredBackstop {
  readonly market_id: number
  readonly spec: MarketListed['spec']
  /** The exchange's own restriction; the contract's mode is in `terms`. */
  readonly mode: MarketMode
  /** Null: the listed terms apply. */
  readonly terms: StoredTerms | null
  readonly fee_periods: readonly StoredFeePeriod[]
  readonly price_protection: Wei
  readonly next_price_protection: Wei | null
  readonly next_price_protection_at: number | null
  readonly impact_notional: Wei | null
  readonly calendar: CalendarName | null
  readonly final_report: StoredFinalReport | null
  readonly ended: StoredEnd | null
}

/** Progress of a market: values that each batch, mark or action changes. */
export interface ProgressRow {
  readonly marketId: MarketId
  readonly lastBatchId: number
  /** Journal head in the auction of the last batch: orders up to it were in the book. */
  readonly lastBatchHead: Seq
  /** `asOf` of the last queued action. */
  readonly lastAsOf: Millis
  readonly lastPrice: Ticks | null
  readonly lastPriceAt: Millis | null
  readonly lastQueueNo: number
  readonly lastActionId: number
  /** True while the mark is held until every order that it triggers has been triggered. */
  readonly isMarkHeld: boolean
  readonly heldMark: Price
  /** Taker rate of reservations, and the progress of their recomputation. */
  readonly reservedFee: Rate
  readonly reservingAfter: UserId | null
  readonly markPrice: Price
  readonly oraclePrice: Price
  readonly oracleAt: Millis
  readonly pricesAt: Millis
}

/**
 * A cleared batch with the fields that its parts need. The row lives until all parts are confirmed or voided.
 */
export interface BatchRow {
  readonly market_id: number
  readonly batch_id: number
  readonly as_of: number
  readonly price: number
  readonly parts: number
  readonly oracle_price: Wei
  readonly oracle_at: number
  readonly oracle_signatures: string
  readonly maker_fee: Wei
  readonly taker_fee: Wei
  readonly status: BatchStatus
  /** Sequence of the last row that changed the batch. */
  readonly changed: number
}

export type ActionState = 'QUEUED' | 'SIGNED' | 'SUBMITTED' | 'MINED' | 'REVERTED' | 'VOIDED'

export interface ActionRow {
  readonly market_id: number
  readonly queue_no: number
  readonly kind: ActionKind
  readonly batch_id: number | null
  readonly part: number | null
  readonly payload: StoredPayload | null
  /** Accounts with positions that a single action may change, ascending. */
  readonly touches: readonly number[]
  readonly as_of: number
  readonly status: ActionState
  readonly action_id: number | null
  readonly relayer: string | null
  readonly nonce: number | null
  readonly failure: string | null
  /** The action reverted with an error that names neither an order nor an account. */
  readonly is_unnamed?: true
  /** Sequence of the last row that changed the action. */
  readonly changed: number
}

/** Averages of a market's mark and its funding rate. */
export interface AveragesRow {
  readonly market_id: number
  readonly basis: Wei
  readonly basis_at: number
  readonly premium_at: number
  /** Premium intervals, ascending. */
  readonly premium: readonly StoredInterval[]
}

export const averagesTable = (core: StateCore): DocumentTable<AveragesRow> =>
  new DocumentTable(core, { name: 'averages', seed: 22, keyOf: ({ market_id }) => String(market_id) })

export const marketTable = (core: StateCore): DocumentTable<MarketRow> =>
  new DocumentTable(core, { name: 'markets', seed: 8, keyOf: ({ market_id }) => String(market_id) })

export const progressTable = (core: StateCore): RecordTable<ProgressRow> =>
  new RecordTable(
    core,
    {
      name: 'progress',
      seed: 9,
      fields: {
        marketId: small<MarketId>(),
        isMarkHeld: flag,
        lastBatchId: count<number>(),
        lastBatchHead: count<Seq>(),
        lastAsOf: count<Millis>(),
        lastPrice: optionalCount<Ticks>(),
        lastPriceAt: optionalCount<Millis>(),
        lastQueueNo: count<number>(),
        lastActionId: count<number>(),
        heldMark: wei<Price>(),
        reservedFee: wei<Rate>(),
        reservingAfter: optionalCount<UserId>(),
        markPrice: wei<Price>(),
        oraclePrice: wei<Price>(),
        oracleAt: count<Millis>(),
        pricesAt: count<Millis>(),
      },
      keyOf: ({ marketId }) => [marketId],
    },
    ['marketId'],
  )

export const batchKey = (marketId: number, batchId: number): string => `${marketId}-${batchId}`

export const batchTable = (core: StateCore): DocumentTable<BatchRow> =>
  new DocumentTable(core, {
    name: 'batches',
    seed: 10,
    keyOf: ({ market_id, batch_id }) => batchKey(market_id, batch_id),
  })

export const actionKey = (marketId: number, queueNo: number): string => `${marketId}-${queueNo}`

export const actionTable = (core: StateCore): DocumentTable<ActionRow> =>
  new DocumentTable(core, {
    name: 'actions',
    seed: 11,
    keyOf: ({ market_id, queue_no }) => actionKey(market_id, queue_no),
  })

/** Queue numbers of a market's actions. A derived index: it follows the table. */
export class ActionQueues {
  /** Numbers of actions that are neither mined nor ended, ascending. */
  readonly #pending = new Map<number, number[]>()
  readonly #byActionId = new Map<string, number>()
  readonly #byPart = new Map<string, number>()

  constructor(actions: DocumentTable<ActionRow>) {
    actions.observe((before, after) => {
      if (before !== undefined) this.#forget(before)
      if (after !== undefined) this.#remember(after)
    })
  }

  /** Numbers of the market's pending actions, ascending. */
  pending(marketId: number): readonly number[] {
    return this.#pending.get(marketId) ?? []
  }

  /** Number of the market's action with this id, unless it was refused or dropped. */
  ofActionId(marketId: number, actionId: number): number | undefined {
    return this.#byActionId.get(`${marketId}-${actionId}`)
  }

  /** Number of the action that settles this part. */
  ofPart(marketId: number, batchId: number, part: number): number | undefined {
    return this.#byPart.get(`${batchKey(marketId, batchId)}-${part}`)
  }

  #forget({ market_id, queue_no, action_id, status, batch_id, part }: ActionRow): void {
    if (batch_id !== null) this.#byPart.delete(`${batchKey(market_id, batch_id)}-${part}`)
    if (isPending(status)) {
      const queue = this.#pending.get(market_id) ?? []
      const at = queue.indexOf(queue_no)
      if (at >= 0) queue.splice(at, 1)
    }
    if (action_id !== null && this.ofActionId(market_id, action_id) === queue_no)
      this.#byActionId.delete(`${market_id}-${action_id}`)
  }

  #remember({ market_id, queue_no, action_id, status, batch_id, part }: ActionRow): void {
    if (batch_id !== null) this.#byPart.set(`${batchKey(market_id, batch_id)}-${part}`, queue_no)
    if (isPending(status)) {
      const queue = this.#pending.get(market_id) ?? []
      let at = queue.length
      while (at > 0 && (queue[at - 1] as number) > queue_no) at--
      queue.splice(at, 0, queue_no)
      this.#pending.set(market_id, queue)
    }
    if (action_id !== null && status !== 'REVERTED' && status !== 'VOIDED')
      this.#byActionId.set(`${market_id}-${action_id}`, queue_no)
  }
}

export const isPending = (status: ActionState): boolean =>
  status === 'QUEUED' || status === 'SIGNED' || status === 'SUBMITTED'

export const noProgress = (marketId: MarketId, reservedFee: Rate): ProgressRow => ({
  marketId,
  lastBatchId: 0,
  lastBatchHead: 0 as Seq,
  lastAsOf: 0 as Millis,
  lastPrice: null,
  lastPriceAt: null,
  lastQueueNo: 0,
  lastActionId: 0,
  isMarkHeld: false,
  heldMark: 0n as Price,
  reservedFee,
  reservingAfter: null,
  markPrice: 0n as Price,
  oraclePrice: 0n as Price,
  oracleAt: 0 as Millis,
  pricesAt: 0 as Millis,
})
