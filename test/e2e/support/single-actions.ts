/** Queues single actions in the markets of a running exchange, as the keeper's jobs do, and records which accounts they touch until when. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { unpackInputs } from '../../../db/batch-inputs.ts'
import { latestReport } from '../../../db/oracle-reports.ts'
import type { SingleAction } from '../../../domain/actions/action.ts'
import type { StoredPayload } from '../../../domain/actions/stored-action.ts'
import { fundingCapAt } from '../../../domain/prices/funding.ts'
import { fundingIndexAt } from '../../../domain/prices/funding-state.ts'
import { allowedMove } from '../../../domain/prices/report.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type {
  Address,
  FundingIndex,
  HourlyFunding,
  MarketId,
  Millis,
  Price,
  Steps,
} from '../../../domain/units.ts'
import { feedIdOf, finalFeedIdOf, parametersOf } from '../../../stack/deploy.ts'
import type { Stack } from '../../../stack/stack.ts'
import type { QueueEnd } from '../../support/enqueue.ts'
import { legalDeleveraging, type Positions, type Shares } from '../../support/legal-deleveraging.ts'
import { PATIENCE } from '../../support/patience.ts'
import { untouchedPositions } from '../../support/untouched-positions.ts'
import type { Fault, QueuedKind } from './faults.ts'
import { enqueueAsOwner } from './test-owner.ts'

const HOUR_MS = 3_600_000
const QUEUE_LIMIT_MS = 10_000
const NO_BACKSTOP = `0x${'0'.repeat(40)}` as Address

/** Moves of the price that are tried for a deleveraging, in thousandths. From the last one the price is back within some seconds. */
const MOVES = Array.from({ length: 34 }, (_, at) => 10 + 5 * at)

/** Accounts whose positions a queued action may change, or after its end could have changed. */
export interface Touch {
  readonly n: number
  readonly market_id: number
  readonly queue_no: number
  readonly touches: readonly number[]
  readonly is_pending: boolean
  readonly kind: string
  /** Null until it is signed. */
  readonly action_id: number | null
  readonly payload: StoredPayload
}

type Deleveraging = Extract<Fault, { readonly kind: 'deleverage' }>

/** Its numbers are from the sequence of \`transaction_record\`: an action is queued under the lock of the shard. */
const INSTALL = `
  create table touch_record (
    n bigint default nextval('transaction_record_n_seq'), market_id integer, queue_no bigint, touches bigint[], is_pending boolean,
    kind text, action_id bigint, payload jsonb
  );
  create function record_touch() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      insert into touch_record (market_id, queue_no, touches, is_pending, kind, action_id, payload)
      values (new.market_id, new.queue_no, new.touches, new.status in ('QUEUED', 'SIGNED', 'SUBMITTED'),
        new.kind, new.action_id, new.payload);
      return null;
    end
  $$;
  create trigger record_touch after insert or update of status on actions for each row
    when (cardinality(new.touches) > 0) execute function record_touch();
`

interface Parties {
  readonly account: Address
  readonly counterparty: Address
}

export class SingleActions {
  readonly #stack: Stack
  /** The funding index of each queued deleveraging, by `<market> <number in the queue>`, if no action before it is dropped. */
  readonly indexes = new Map<string, FundingIndex>()

  private constructor(stack: Stack) {
    this.#stack = stack
  }

  /** Must be called after the installation of the transaction recorder. */
  static async install(stack: Stack): Promise<SingleActions> {
    await sql.raw(INSTALL).execute(stack.db)
    return new SingleActions(stack)
  }

  /** Queues the action as soon as one can be mined and the report is not older than that of the queue. */
  async add(marketId: number, kind: QueuedKind, parties: Parties): Promise<void> {
    for (const deadline = Date.now() + QUEUE_LIMIT_MS; Date.now() < deadline; await sleep(200)) {
      const report = await this.#report(marketId)
      const build = (end: QueueEnd): SingleAction => this.#build(marketId, kind, { report, end, ...parties })
      const verdict = await enqueueAsOwner(this.#stack, { marketId, now: Date.now() as Millis, build })
      if (verdict.ok && verdict.value !== null) return
    }
  }

  /**
   * Queues a deleveraging at the price nearest to the last used one at which it is legal. False if there is none within the time limit. It is
   * decided on positions that nothing changes meanwhile: the indexer takes a leg that closes less than its steps for a fault.
   */
  async deleverage({ market, side, shares }: Deleveraging): Promise<boolean> {
    for (const deadline = Date.now() + QUEUE_LIMIT_MS; Date.now() < deadline; await sleep(200)) {
      let index = 0n as FundingIndex
      const verdict = await enqueueAsOwner(this.#stack, {
        marketId: market,
        now: Date.now() as Millis,
        build: (end, state) => {
          index = fundingIndexAt(end.funding, end.asOf)
          return this.#deleveraging({ market, side, shares }, untouchedPositions(state, market), end, index)
        },
      })
      if (!verdict.ok || verdict.value === null) continue
      this.indexes.set(`${market} ${verdict.value}`, index)
      return true
    }
    return false
  }

  #deleveraging(
    { market, side, shares }: Pick<Deleveraging, 'market' | 'side'> & { readonly shares: Shares },
    positions: Positions,
    { asOf, usedReport: used }: QueueEnd,
    index: FundingIndex,
  ): SingleAction | null {
    if (used === null) return null
    const spec = this.#specOf(market)
    const observedAt = Math.max(asOf, used.observedAt + 1) as Millis
    const { moveBase, moveSlope, moveWindow } = parametersOf(spec)
    const rules = {
      kind: spec.kind,
      moveBase,
      moveSlope: BigInt(moveSlope),
      moveWindow: moveWindow as Millis,
    }
    const allowed = allowedMove(used.price, observedAt - used.observedAt, rules)
    for (const thousandths of MOVES) {
      const moved = (used.price * BigInt(thousandths)) / 1000n
      const oracle = (used.price + (side === 'LONG' ? -moved : moved)) as Price
      if (moved > allowed || (spec.kind === 'binary_future' && oracle >= 10n ** 18n)) return null
      const backstop = this.#stack.backstop === null ? null : 'unknown'
      const parties = legalDeleveraging({ spec, index, oracle, backstop }, positions, shares)
      if (parties === null) continue
      const report = this.#stack.oracle.sign(feedIdOf(market), oracle, observedAt)
      return { kind: 'deleverage', asOf, ...parties, report }
    }
    return null
  }

  /** Queues the end of a closed market, as of the chain's time. Returns null, or the code of the law that forbids it. */
  async finalize(marketId: number, report: OracleReport): Promise<string | null> {
    for (const deadline = Date.now() + QUEUE_LIMIT_MS * PATIENCE; ; await sleep(200)) {
      const { timestamp = 0 } = (await this.#stack.provider.getBlock('latest')) ?? {}
      const build = ({ asOf }: QueueEnd): SingleAction => ({ kind: 'finalize_market', asOf, report })
      const verdict = await enqueueAsOwner(this.#stack, {
        marketId,
        now: (timestamp * 1000) as Millis,
        build,
      })
      if (!verdict.ok) return verdict.refusal.code
      if (verdict.value !== null) return null
      if (Date.now() > deadline) throw new Error('the chain stays behind the last action of the market')
    }
  }

  #build(
    marketId: number,
    kind: QueuedKind,
    { report, end: { asOf }, account, counterparty }: Parties & { report: OracleReport; end: QueueEnd },
  ): SingleAction {
    const { oracle } = this.#stack
    switch (kind) {
      case 'fund':
      case 'fund_beyond_bounds': {
        const cap = fundingCapAt(this.#specOf(marketId), report.price)
        const rate = kind === 'fund' ? cap / 10_000n : cap * 1_000n
        const terms = { rate: rate as HourlyFunding, validUntil: (asOf + HOUR_MS) as Millis }
        return { kind: 'update_funding', asOf, ...terms, report, session: null }
      }
      case 'inherit':
        return { kind: 'inherit_position', asOf, account, backstop: NO_BACKSTOP, report }
      case 'deleverage':
        return { kind: 'deleverage', asOf, account, legs: [{ counterparty, steps: 1 as Steps }], report }
      case 'finalize':
        return {
          kind: 'finalize_market',
          asOf,
          report: oracle.sign(finalFeedIdOf(marketId), report.price, asOf),
        }
    }
  }

  #specOf(marketId: number) {
    const spec = this.#stack.specs.find((one) => one.marketId === marketId)
    if (spec === undefined) throw new RangeError(`the stack has no market ${marketId}`)
    return spec
  }

  async #report(marketId: number): Promise<OracleReport> {
    const key = { marketId: marketId as MarketId, feed: 'index' } as const
    const report = await latestReport(this.#stack.db, key)
    if (report === null) throw new Error(`market ${marketId} has no price`)
    return report
  }

  /** Those recorded after `n`, in order. */
  async touchesAfter(n: number): Promise<readonly Touch[]> {
    const { rows } = await sql<Touch>`
      select n, market_id, queue_no, to_json(touches) as touches, is_pending, kind, action_id, payload
      from touch_record where n > ${n} order by n
    `.execute(this.#stack.db)
    return rows
  }

  /** The funding index of each batch that the keeper has cleared, by `<market> <batch>`. */
  async fundingIndexes(): Promise<ReadonlyMap<string, bigint>> {
    const { db } = this.#stack
    const rows = await db.selectFrom('batch_inputs').select(['market_id', 'batch_id', 'inputs']).execute()
    return new Map(
      rows.flatMap(({ market_id, batch_id, inputs }) => {
        const index = unpackInputs(inputs).fundingIndex
        return index === 0n ? [] : [[`${market_id} ${batch_id}`, index] as const]
      }),
    )
  }
}
