/** Ends a market on a local chain as its admin, a reporter of its final price and its accounts do. The operator finalizes it. */
import type { JsonRpcProvider, Signer } from 'ethers'
import type { Db } from '../../db/client.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Position } from '../../domain/positions/position.ts'
import { claimDue, haircutOf, INSOLVENCY_WINDOW, valueAt } from '../../domain/risk/wind-down.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Address, FundingIndex, Millis, Price, Quote, Steps } from '../../domain/units.ts'
import { feedIdOf, finalFeedIdOf } from '../../stack/deploy.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { passTime } from './chain-faults.ts'

/** `NOTICE` of the contracts: from the announcement of a close to the close. */
const NOTICE_MS = 86_400_000
/** For the blocks between two readings of the chain's time. */
const SPARE_MS = 10_000
const SETTLING = 3

export interface EndingParts {
  readonly provider: JsonRpcProvider
  readonly spec: MarketSpec
  readonly bank: string
  /** Must not count nonces itself: forks take its transactions back. */
  readonly admin: Signer
  readonly sign: (feedId: string, price: Price, at: Millis) => OracleReport
  /** How far the chain's time is ahead of the computer's. Each step of an ending adds the time that it lets pass. */
  readonly time: { aheadMs: number }
  /** Lets time pass for more than the chain, and adds it to `time`. */
  readonly pass?: (ms: number) => Promise<void>
}

/** Free balances as the chain's blocks have changed them. */
export async function freeByAddress(db: Db): Promise<Map<Address, bigint>> {
  const rows = await db
    .selectFrom('read.balances')
    .innerJoin('users', 'users.user_id', 'read.balances.user_id')
    .select(['address', 'free'])
    .execute()
  return new Map(rows.map(({ address, free }) => [address as Address, free]))
}

export class MarketEnding {
  readonly #parts: EndingParts

  constructor(parts: EndingParts) {
    this.#parts = parts
  }

  get #market() {
    return IsolatedTrader__factory.connect(this.#parts.spec.trader, this.#parts.admin)
  }

  async now(): Promise<Millis> {
    const block = await this.#parts.provider.getBlock('latest')
    return ((block?.timestamp ?? 0) * 1000) as Millis
  }

  async #pass(ms: number): Promise<void> {
    const { pass, time } = this.#parts
    if (pass !== undefined) return pass(ms)
    await passTime(this.#parts, ms)
    time.aheadMs += ms
  }

  /** Announces the close and passes the time until it. */
  async close(): Promise<void> {
    const from = (await this.now()) + NOTICE_MS + SPARE_MS
    await (await this.#market.scheduleMode(SETTLING, from)).wait()
    await this.#pass(NOTICE_MS + 2 * SPARE_MS)
  }

  /**
   * Submits the final price, which another report may replace until `passDisputeWindow`. A keeper may be faster: of two reports of a perpetual,
   * the one nearer to the close is in force.
   */
  async report(price: Price): Promise<OracleReport> {
    const at = await this.now()
    try {
      return await this.#submit(price, at)
    } catch (error) {
      const inForce = this.#observedInForce(error)
      if (inForce === null) throw error
      return this.#submit(price, (inForce - 1) as Millis)
    }
  }

  /** When the report was observed by which the chain has refused another; null for another refusal. */
  #observedInForce(error: unknown): number | null {
    const { data } = error as { readonly data?: string | null }
    const refusal = data == null ? null : this.#market.interface.parseError(data)
    return refusal?.name === 'FinalReportSuperseded' ? Number(refusal.args.inForce) : null
  }

  async #submit(price: Price, at: Millis): Promise<OracleReport> {
    const { spec, sign } = this.#parts
    const feed = spec.kind === 'perpetual' ? feedIdOf(spec.marketId) : finalFeedIdOf(spec.marketId)
    const report = sign(feed, price, at)
    const { observedAt, signatures: proof } = report
    await (await this.#market.submitFinalReport({ price, observedAt, proof })).wait()
    return report
  }

  passDisputeWindow(): Promise<void> {
    return this.#pass(this.#parts.spec.disputeWindow + SPARE_MS)
  }

  /** Reports the deficits, and passes the time in which that is possible. Returns what each account is due by the rules, if anything. */
  async reportDeficits(accounts: readonly Address[]): Promise<ReadonlyMap<Address, bigint>> {
    await (await this.#market.reportInsolvent([...accounts])).wait()
    await this.#pass(INSOLVENCY_WINDOW + SPARE_MS)
    const { price, poolAtEnd, deficit } = await this.#market.windDown()
    const haircut = haircutOf(poolAtEnd as Quote, (await this.pool()) as Quote, deficit as Quote)
    const { fundingIndex } = await this.#market.lastReference()
    const due = new Map<Address, bigint>()
    for (const account of accounts) {
      const position = await this.#position(account, fundingIndex)
      const value = valueAt(this.#parts.spec, position, fundingIndex as FundingIndex, price as Price)
      if (value > 0n) due.set(account, claimDue(value, haircut))
    }
    return due
  }

  async #position(account: Address, index: bigint): Promise<Position> {
    const { size, entryNotional, margin, leverage } = await this.#market.position(account)
    return {
      size: Number(size) as Steps,
      entryNotional: entryNotional as Quote,
      foldedMargin: (margin + size * index) as Quote,
      leverage: Number(leverage),
    }
  }

  /** Claims for each of the accounts whose position has not been paid out yet. Another account, such as the keeper, may be faster. */
  async claim(accounts: Iterable<Address>): Promise<void> {
    for (const account of accounts) {
      if (await this.#isPaid(account)) continue
      try {
        await (await this.#market.claim(account)).wait()
      } catch (error) {
        if (!(await this.#isPaid(account))) throw error
      }
    }
  }

  async #isPaid(account: Address): Promise<boolean> {
    return (await this.#market.position(account)).size === 0n
  }

  async pool(): Promise<bigint> {
    const bank = MarginBank__factory.connect(this.#parts.bank, this.#parts.provider)
    return (await bank.market(this.#parts.spec.trader)).pool
  }
}
