/** How far the end of a market has come, by its contract and by the database. */
import { ENDING_COLUMNS } from '../db/market-endings.ts'
import type { StoredEnd } from '../domain/journal/ending-rows.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { type Ending, reportableUntil } from '../domain/risk/ending.ts'
import { toEnding } from '../domain/risk/stored-ending.ts'
import { INSOLVENCY_WINDOW, payoutRatio } from '../domain/risk/wind-down.ts'
import { type Millis, type Price, type Quote, toDecimal } from '../domain/units.ts'
import { timeOfMillis, usdm } from '../tasks/print.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import type { Connection } from './connect.ts'
import type { Row } from './show.ts'

/** The end of a market without how it came about, which the contract does not store. */
type End = Omit<StoredEnd, 'how' | 'price_at'>

export interface Life {
  readonly ending: Ending
  /** Null until the market has ended. */
  readonly end: End | null
}

const NONE = '-'
const millis = (value: bigint): Millis => Number(value) as Millis

export async function lifeOnChain({ provider }: Pick<Connection, 'provider'>, trader: string): Promise<Life> {
  const market = IsolatedTrader__factory.connect(trader, { provider })
  const { expiresAt, settlingAt, disputeWindow, reportedAt, price, observedAt } = await market.ending()
  const windDown = await market.windDown()
  const owed = windDown.poolAtEnd + windDown.deficit
  return {
    ending: {
      expiresAt: millis(expiresAt),
      settlingAt: millis(settlingAt),
      disputeWindow: millis(disputeWindow),
      report:
        reportedAt === 0n
          ? null
          : { price: price as Price, observedAt: millis(observedAt), reportedAt: millis(reportedAt) },
    },
    end:
      windDown.endedAt === 0n
        ? null
        : {
            price: windDown.price.toString(),
            ended_at: Number(windDown.endedAt),
            pool: windDown.poolAtEnd.toString(),
            deficit: windDown.deficit.toString(),
            haircut: windDown.haircutFixed
              ? { pool: windDown.haircutPool.toString(), owed: owed.toString() }
              : null,
          },
  }
}

async function lifeInDatabase({ db }: Pick<Connection, 'db'>, marketId: number): Promise<Life> {
  const row = await db
    .selectFrom('markets')
    .select([...(['expires_at', 'settling_at'] as const), ...ENDING_COLUMNS])
    .where('market_id', '=', marketId)
    .executeTakeFirstOrThrow()
  return { ending: toEnding(row), end: row.ended }
}

const ratioOf = ({ pool, owed }: NonNullable<End['haircut']>): string =>
  toDecimal(payoutRatio({ pool: BigInt(pool) as Quote, owed: BigInt(owed) as Quote }))

function columnOf({ ending, end }: Life): Record<string, string> {
  const { report } = ending
  return {
    'final price':
      report === null ? NONE : `${toDecimal(report.price)}, observed ${timeOfMillis(report.observedAt)}`,
    'replaceable until': report === null ? NONE : timeOfMillis(reportableUntil(ending) as Millis),
    ended: end === null ? NONE : `${timeOfMillis(end.ended_at)} at ${toDecimal(BigInt(end.price))}`,
    ...(end && {
      'claims from': timeOfMillis(end.ended_at + INSOLVENCY_WINDOW),
      'pool at the end': usdm(BigInt(end.pool)),
      'reported deficits': usdm(BigInt(end.deficit)),
      'claims pay': end.haircut === null ? 'not fixed yet' : `${ratioOf(end.haircut)} of their value`,
    }),
  }
}

export async function lifeOf(
  connection: Pick<Connection, 'provider' | 'db'>,
  { marketId, trader }: MarketSpec,
): Promise<Row[]> {
  const chain = columnOf(await lifeOnChain(connection, trader))
  const database = columnOf(await lifeInDatabase(connection, marketId))
  return [...new Set([...Object.keys(chain), ...Object.keys(database)])].map((name) => ({
    ...{ name, chain: chain[name] ?? NONE, database: database[name] ?? NONE },
  }))
}
