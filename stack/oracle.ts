/** The simulated oracle: takes prices from a source, signs them as the markets' contracts check them, and publishes them. */
import { Signature, SigningKey, TypedDataEncoder } from 'ethers'
import type { Db } from '../db/client.ts'
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

/** One signer is enough for the local stack; more would be concatenated in ascending order of address. */
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

/** Makes a report the market's latest. A report older than the one that is there is dropped. */
export async function publish(db: Db, marketId: number, report: OracleReport): Promise<void> {
  const row = {
    price: report.price,
    observed_at: report.observedAt,
    signatures: report.signatures,
    received_at: Date.now(),
  }
  await db
    .insertInto('oracle_reports')
    .values({ market_id: marketId, ...row })
    .onConflict((conflict) =>
      conflict
        .column('market_id')
        .doUpdateSet(row)
        .where('oracle_reports.observed_at', '<', report.observedAt),
    )
    .execute()
}

export interface Feed {
  readonly marketId: number
  readonly feedId: string
  readonly source: (start: Price | null) => PriceSource
}

const INTERVAL_MS = 500
/** Whoever holds this lease feeds the market's price instead of the walk. */
export const feedLease = (marketId: number): string => `oracle:${marketId}`

/**
 * Publishes a price of every feed twice a second until it is stopped. A feed that somebody else has taken over is left alone, and
 * taken up again at the price where he left it.
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
    const taken = await takenOver(db)
    for (const { marketId, feedId, source } of feeds) {
      if (taken.has(feedLease(marketId))) {
        sources.delete(marketId)
        continue
      }
      const prices = sources.get(marketId) ?? source(await latestPrice(db, marketId))
      sources.set(marketId, prices)
      await publish(db, marketId, signer.sign(feedId, prices.next(), Date.now() as Millis))
    }
  }

  const loop = async (): Promise<void> => {
    const started = Date.now()
    try {
      await tick()
      failing = false
    } catch (error) {
      if (!failing) report(`oracle: ${(error as Error).message}`)
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

async function takenOver(db: Db): Promise<Set<string>> {
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
    .executeTakeFirst()
  return (row?.price as Price | undefined) ?? null
}
