/** Queues single actions in the markets of a running exchange, as the keeper's jobs do, and records which accounts they touch until when. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Fence } from '../../../db/fence.ts'
import { createLeases } from '../../../db/leases.ts'
import type { SingleAction } from '../../../domain/actions/action.ts'
import { fundingCapAt } from '../../../domain/prices/funding.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Address, HourlyFunding, MarketId, Millis, Price, Steps } from '../../../domain/units.ts'
import type { QueueEnd } from '../../../keeper/actions/ports.ts'
import { createActionQueue } from '../../../keeper/actions/store.ts'
import { finalFeedIdOf } from '../../../stack/deploy.ts'
import type { Stack } from '../../../stack/stack.ts'
import type { QueuedKind } from './faults.ts'

const LEASE_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000
const QUEUE_LIMIT_MS = 10_000
const NO_BACKSTOP = `0x${'0'.repeat(40)}` as Address

/** Accounts whose positions a queued action may change, or after its end could have changed. */
export interface Touch {
  readonly n: number
  readonly market_id: number
  readonly queue_no: number
  readonly touches: readonly number[]
  readonly is_pending: boolean
}

/** Its numbers are from the sequence of \`transaction_record\`: an action is queued under the lock of the shard. */
const INSTALL = `
  create table touch_record (
    n bigint default nextval('transaction_record_n_seq'), market_id integer, queue_no bigint, touches bigint[], is_pending boolean
  );
  create function record_touch() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      insert into touch_record (market_id, queue_no, touches, is_pending)
      values (new.market_id, new.queue_no, new.touches, new.status in ('QUEUED', 'SIGNED', 'SUBMITTED'));
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
  readonly #fences = new Map<number, Promise<Fence | null>>()

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
    const { db, provider } = this.#stack
    const fence = await this.#fence(marketId)
    for (const deadline = Date.now() + QUEUE_LIMIT_MS; Date.now() < deadline; await sleep(200)) {
      const report = await this.#report(marketId)
      const headTime = (((await provider.getBlock('latest'))?.timestamp ?? 0) * 1000) as Millis
      const queue = createActionQueue(db)
      const verdict = await queue.enqueue(marketId as MarketId, fence, headTime, (end) =>
        this.#build(marketId, kind, { report, end, ...parties }),
      )
      if (verdict.ok && verdict.value !== null) return
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
    const { price, observed_at, signatures } = await this.#stack.db
      .selectFrom('oracle_reports')
      .selectAll()
      .where('market_id', '=', marketId)
      .executeTakeFirstOrThrow()
    return {
      price: price as Price,
      observedAt: observed_at as Millis,
      signatures: signatures as OracleReport['signatures'],
    }
  }

  async #fence(marketId: number): Promise<Fence> {
    const name = `funding:m${marketId}`
    const acquired =
      this.#fences.get(marketId) ?? createLeases(this.#stack.db, 'model test', LEASE_MS).acquire(name)
    this.#fences.set(marketId, acquired)
    const fence = await acquired
    if (fence === null) throw new Error(`${name} has another owner`)
    return fence
  }

  /** Those recorded after `n`, in order. */
  async touchesAfter(n: number): Promise<readonly Touch[]> {
    const { rows } = await sql<Touch>`
      select n, market_id, queue_no, to_json(touches) as touches, is_pending from touch_record where n > ${n} order by n
    `.execute(this.#stack.db)
    return rows
  }

  /** The funding index of each batch that the keeper has cleared, by `<market> <batch>`. */
  async fundingIndexes(): Promise<ReadonlyMap<string, bigint>> {
    const { rows } = await sql<{ market_id: number; batch_id: number; funding_index: bigint }>`
      select market_id, batch_id, (inputs ->> 'fundingIndex')::numeric as funding_index
      from batches where inputs ->> 'fundingIndex' <> '0'
    `.execute(this.#stack.db)
    return new Map(
      rows.map(({ market_id, batch_id, funding_index }) => [`${market_id} ${batch_id}`, funding_index]),
    )
  }
}
