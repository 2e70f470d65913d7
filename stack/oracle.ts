/** The simulated oracle: reads prices from a source, signs them as reports, and publishes the reports to the database. */
import { Signature, SigningKey, TypedDataEncoder } from 'ethers'
import type { Db } from '../db/client.ts'
import { publishReports } from '../db/oracle-reports.ts'
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Millis, Price } from '../domain/units.ts'
import type { PriceSource } from './prices.ts'

export interface ReportSigner {
  sign(feedId: string, price: Price, observedAt: Millis): OracleReport
}

export interface SignerDomain {
  readonly chainId: number
  /** The SignedPriceOracle. */
  readonly address: string
}

const REPORT = {
  PriceReport: [
    { name: 'feedId', type: 'bytes32' },
    { name: 'price', type: 'uint256' },
    { name: 'observedAt', type: 'uint256' },
  ],
}

/** The local stack has one signer. With several, the signatures are concatenated in ascending order of address. */
export function createReportSigner(privateKey: string, { chainId, address }: SignerDomain): ReportSigner {
  const key = new SigningKey(privateKey)
  const domain = { name: 'SignedPriceOracle', version: '1', chainId, verifyingContract: address }
  return {
    sign(feedId, price, observedAt) {
      const digest = TypedDataEncoder.hash(domain, REPORT, { feedId, price, observedAt })
      const signatures = Signature.from(key.sign(digest)).serialized as `0x${string}`
      return { price, observedAt, signatures }
    },
  }
}

export interface Feed {
  readonly marketId: number
  readonly feedId: string
  readonly source: (start: Price | null) => PriceSource
}

/** A walk's step in this time is far below the move that a market accepts in it (`allowedMove`), so that prices never halt one. */
export const INTERVAL_MS = 500
/** While a program owns this lease, it publishes the market's price instead of the simulated oracle. */
export const feedLease = (marketId: number): string => `oracle:${marketId}`

/**
 * Publishes a price of every feed twice per second until it is stopped. It skips a feed whose lease another program owns, and continues
 * from that program's last price when the lease ends.
 */
export function runOracle(
  db: Db,
  signer: ReportSigner,
  feeds: readonly Feed[],
  report: (line: string) => void,
) {
  const sources = new Map<number, PriceSource>()
  let stopped = false
  let timer: NodeJS.Timeout | null = null
  let running = Promise.resolve()
  let failing = false

  const tick = async (): Promise<void> => {
    const leased = await ownedLeases(db)
    for (const { marketId, feedId, source } of feeds) {
      if (leased.has(feedLease(marketId))) {
        sources.delete(marketId)
        continue
      }
      const prices = sources.get(marketId) ?? source(await latestPrice(db, marketId))
      sources.set(marketId, prices)
      const report = signer.sign(feedId, prices.next(), Date.now() as Millis)
      await publishReports(db, [{ marketId, feed: 'index', report, readings: [] }])
    }
  }

  const loop = async (): Promise<void> => {
    const started = Date.now()
    try {
      await tick()
      failing = false
    } catch (error) {
      if (!failing)
        report(
          `the simulated oracle failed to publish: ${(error as Error).message}; it retries every ${INTERVAL_MS} ms`,
        )
      failing = true
    }
    if (stopped) return
    timer = setTimeout(start, Math.max(0, INTERVAL_MS - (Date.now() - started)))
  }
  const start = (): void => {
    running = loop()
  }
  start()

  return {
    async stop(): Promise<void> {
      stopped = true
      if (timer !== null) clearTimeout(timer)
      await running
    },
  }
}

async function ownedLeases(db: Db): Promise<Set<string>> {
  const rows = await db
    .selectFrom('leases')
    .select('name')
    .where('name', 'like', 'oracle:%')
    .where('expires_at', '>', Date.now())
    .execute()
  return new Set(rows.map(({ name }) => name))
}

/** Null before the first report. */
export async function latestPrice(db: Db, marketId: number): Promise<Price | null> {
  const row = await db
    .selectFrom('oracle_reports')
    .select('price')
    .where('market_id', '=', marketId)
    .where('feed', '=', 'index')
    .executeTakeFirst()
  return (row?.price as Price | undefined) ?? null
}
