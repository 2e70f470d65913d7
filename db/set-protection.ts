/**
 * `npm run set-protection`: announces the width of a market's price protection for a day ahead, in the database at DATABASE_URL. The
 * connection must be the owner's.
 */
import {
  isPriceProtection,
  MAX_PRICE_PROTECTION,
  type ProtectionSchedule,
} from '../domain/market/price-protection.ts'
import { type Rate, toDecimal } from '../domain/units.ts'
import { argumentsOf, decimal, rejectArguments, required, text, UsageError } from '../service/command-line.ts'
import { createDb, createPool, type Db } from './client.ts'
import { readClock } from './clock.ts'
import { ownerDatabaseUrl } from './config.ts'
import { announceProtection, loadMarkets } from './markets.ts'
import { checkSchema } from './migrator.ts'

const LINE = {
  command: 'npm run set-protection --',
  flags: {
    market: required(text('<symbol>', 'symbol of the market')),
    protection: required(
      decimal('the new width, such as 0.01: a share of the price; in a binary future a distance'),
    ),
  },
} as const

const DECIMALS = 18

/** Null if it has more decimals than are stored. */
function toWei(number: string): bigint | null {
  const [whole = '', fraction = ''] = number.split('.')
  return fraction.length > DECIMALS ? null : BigInt(whole + fraction.padEnd(DECIMALS, '0'))
}

async function announce(db: Db, symbol: string, protection: string): Promise<ProtectionSchedule> {
  await checkSchema(db)
  const markets = await loadMarkets(db)
  const spec = markets.find((market) => market.symbol === symbol)
  if (spec === undefined) {
    const symbols = markets.map((market) => market.symbol).join(', ')
    return rejectArguments(LINE, `--market must be one of ${symbols}, not ${symbol}`)
  }
  const width = toWei(protection)
  if (width === null || !isPriceProtection(spec.kind, width)) {
    const most = toDecimal(MAX_PRICE_PROTECTION[spec.kind])
    const valid = `above 0 and at most ${most}, with up to ${DECIMALS} decimals, for a ${spec.kind}`
    return rejectArguments(LINE, `--protection must be ${valid}, not ${protection}`)
  }
  return announceProtection(db, spec.marketId, width as Rate, await readClock(db))
}

const { market, protection } = argumentsOf(LINE)
try {
  const url = ownerDatabaseUrl('announcement')
  const db = createDb(createPool({ url, connections: 1, name: 'clearbatch set-protection' }))
  try {
    const { inForce, next } = await announce(db, market, protection)
    const announced = next && `${toDecimal(next.width)} from ${new Date(next.at).toISOString()} on`
    console.log(`${market}: price protection ${toDecimal(inForce)} in force, announced ${announced}`)
  } finally {
    await db.destroy()
  }
} catch (error) {
  const isUsage = error instanceof UsageError
  console.error(isUsage ? error.message : `set-protection: ${(error as Error).message}`)
  process.exitCode = isUsage ? error.exitCode : 1
}
