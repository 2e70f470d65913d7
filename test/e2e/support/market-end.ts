/** Ends one market of a running exchange: close, final price, finalization under faults, deficits, claims. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Wallet } from 'ethers'
import type { Client } from '../../../client/client.ts'
import type { ClearbatchError } from '../../../client/errors.ts'
import { latestReport } from '../../../db/oracle-reports.ts'
import type { MarketEndedRow } from '../../../domain/journal/action-rows.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Address, Price } from '../../../domain/units.ts'
import type { Stack } from '../../../stack/stack.ts'
import { freeByAddress, MarketEnding } from '../../support/market-ending.ts'
import { waitFor } from '../../support/patience.ts'
import type { FaultInjector } from './fault-injector.ts'
import type { Ending } from './faults.ts'
import { ShiftedTime } from './shifted-time.ts'
import type { SingleActions } from './single-actions.ts'
import { BUDGET_MS } from './trader-notes.ts'

/** For finalizations that faults end, and the restarts of processes between them. */
const END_LIMIT_MS = 180_000

export interface MarketEndParts {
  readonly stack: Stack
  readonly spec: MarketSpec
  readonly injector: FaultInjector
  readonly queue: SingleActions
  /** Of traders with orders and positions. */
  readonly clients: readonly Client[]
}

export class MarketEnd {
  readonly #parts: MarketEndParts
  readonly #ending: MarketEnding
  #time: ShiftedTime | null = null

  constructor(parts: MarketEndParts) {
    this.#parts = parts
    const { stack, spec, injector } = parts
    this.#ending = new MarketEnding({
      ...{ provider: stack.provider, spec, bank: stack.file.contracts.margin_bank, time: injector.time },
      pass: (ms) => this.#pass(ms),
      admin: new Wallet(stack.keys.deployer.privateKey, stack.provider),
      sign: stack.oracle.sign,
    })
  }

  /** For chain and database: the engine's time is never before that of an action that it has queued. */
  async #pass(ms: number): Promise<void> {
    const { stack, injector } = this.#parts
    this.#time ??= await ShiftedTime.install(stack)
    await this.#time.pass(ms)
    injector.time.aheadMs = this.#time.aheadMs
    // Keepers report that their system's clock differs.
    for (const process of [stack.engine, stack.indexer]) await process.ready()
  }

  /** Returns one line per difference from the rules. */
  async play({ isHigh, faults, depth }: Ending): Promise<string[]> {
    const { injector } = this.#parts
    const ending = this.#ending
    await injector.keepBlocks(() => ending.close())
    const price = await this.#finalPrice(isHigh)
    const report = await injector.keepBlocks(() => ending.report(price))
    await injector.keepBlocks(() => ending.passDisputeWindow())
    const injected = injector.inject(faults, () =>
      Promise.reject(new Error('no fault of an end places orders')),
    )
    await this.#untilEnded(report)
    await injected
    await this.#untilEnded(report)
    await injector.inject([{ kind: 'fork', depth, foreign: null, afterMs: 0 }], async () => {})
    await this.#untilEnded(report)
    return [
      ...(await this.#checkEnd(report)),
      ...(await this.#checkTraders()),
      ...(await this.#payOut(depth)),
    ]
  }

  async #finalPrice(isHigh: boolean): Promise<Price> {
    const { stack, spec } = this.#parts
    if (spec.kind === 'binary_future') return isHigh ? spec.finalHigh : spec.finalLow
    const last = await latestReport(stack.db, { marketId: spec.marketId, feed: 'index' })
    if (last === null) throw new Error(`market ${spec.marketId} has no price`)
    return ((last.price * (isHigh ? 115n : 85n)) / 100n) as Price
  }

  /** Queues the end again if a fault ended it, and waits until it is ingested. */
  async #untilEnded(report: OracleReport): Promise<void> {
    const { stack, spec, queue } = this.#parts
    const { marketId } = spec
    for (const deadline = Date.now() + END_LIMIT_MS; Date.now() < deadline; await sleep(250)) {
      const { mode } = await stack.db
        .selectFrom('markets')
        .select('mode')
        .where('market_id', '=', marketId)
        .executeTakeFirstOrThrow()
      if (mode === 'settled') return
      await queue.finalize(marketId, report)
    }
    throw new Error(`market ${marketId} has not ended within ${END_LIMIT_MS} ms`)
  }

  async #checkEnd(report: OracleReport): Promise<string[]> {
    const { stack, spec, queue } = this.#parts
    const rows = await stack.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', marketShard(spec.marketId))
      .orderBy('seq')
      .execute()
    const ends = rows.flatMap(({ row }) => (row.kind === 'market_ended' ? [row] : []))
    const last = ends.at(-1) as MarketEndedRow
    const problems = ends.every(({ rollback }, at) => rollback === (at % 2 === 1))
      ? []
      : [`ends and rollbacks do not alternate: ${ends.map(({ rollback }) => rollback)}`]
    if (last.rollback || last.how !== 'finalized' || BigInt(last.price) !== report.price)
      problems.push(`the market ended as ${JSON.stringify(last)}`)
    const code = await queue.finalize(spec.marketId, report)
    if (code !== 'MARKET_ENDED') problems.push(`a second end of the market: ${code}`)
    const mismatches = await stack.db.selectFrom('settlement_mismatches').selectAll().execute()
    return [...problems, ...mismatches.map(({ failure_reason }) => `mismatch: ${failure_reason}`)]
  }

  /** Reads show the end, no order is accepted any more, and the orders that rest can be cancelled. */
  async #checkTraders(): Promise<string[]> {
    const { spec, clients } = this.#parts
    const { marketId } = spec
    const problems: string[] = []
    for (const client of clients) {
      const { mode } = await waitFor(
        () => client.marketData.market(marketId),
        (market) => market.mode === 'settled',
        { budgetMs: BUDGET_MS },
      )
      const quantity = '1'
      const placed = await client.orders.place({ marketId, side: 'LONG', price: '0.5', quantity }).then(
        () => 'accepted',
        ({ code }: ClearbatchError) => code,
      )
      if (placed !== 'MARKET_ENDED') problems.push(`an order in a market that is ${mode}: ${placed}`)
      const { results } = await client.orders.cancelAll({ marketId })
      const left = results.flatMap((result) => ('order' in result ? [result.order.status] : []))
      if (left.some((status) => status !== 'CANCELLED')) problems.push(`cancelled orders are ${left}`)
    }
    return problems
  }

  /** Every account gets what the rules say, also if a fork takes back some of the payouts. */
  async #payOut(depth: number): Promise<string[]> {
    const { stack, spec, injector } = this.#parts
    const users = await stack.db.selectFrom('users').select('address').execute()
    const accounts = users.map(({ address }) => address as Address)
    // The keeper reports and claims as well, so that a claim may precede those of this test.
    const free = await freeByAddress(stack.db)
    const due = await injector.keepBlocks(() => this.#ending.reportDeficits(accounts))
    await this.#ending.claim(due.keys())
    await injector.inject([{ kind: 'fork', depth, foreign: null, afterMs: 0 }], async () => {})
    await injector.keepBlocks(() => this.#ending.claim(due.keys()))
    // A position that is worth exactly nothing stays: there is nothing to claim for it.
    const open = () =>
      stack.db
        .selectFrom('read.positions')
        .innerJoin('users', 'users.user_id', 'read.positions.user_id')
        .select('address')
        .where('market_id', '=', spec.marketId)
        .where('size', '<>', 0)
        .execute()
    const isPaid = (rows: readonly { address: string }[]) =>
      rows.every(({ address }) => !due.has(address as Address))
    await waitFor(open, isPaid, { budgetMs: BUDGET_MS })
    return [...(await freeByAddress(stack.db))].flatMap(([account, amount]) => {
      const [paid, expected] = [amount - (free.get(account) ?? 0n), due.get(account) ?? 0n]
      return paid === expected ? [] : [`${account} is paid ${paid}; the rules: ${expected}`]
    })
  }
}
