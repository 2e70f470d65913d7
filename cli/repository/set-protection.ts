/**
 * `db set-protection`: announces a market's width of price protection a day ahead, in the database at DATABASE_URL or of the stack that
 * `--stack` names. The connection must be the owner's.
 */
import { loadMarkets } from '../../db/markets.ts'
import { checkSchema } from '../../db/migrator.ts'
import {
  isPriceProtection,
  MAX_PRICE_PROTECTION,
  type ProtectionSchedule,
} from '../../domain/market/price-protection.ts'
import { type Rate, toDecimal } from '../../domain/units.ts'
import { connectDatabase, type DatabaseConnection } from '../../ops/connect.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

const DECIMALS = 18

/** Null if the number has more decimals than the database stores. */
function toWei(number: string): bigint | null {
  const [whole = '', fraction = ''] = number.split('.')
  return fraction.length > DECIMALS ? null : BigInt(whole + fraction.padEnd(DECIMALS, '0'))
}

async function announce(
  { db, settings }: DatabaseConnection,
  symbol: string,
  protection: string,
): Promise<ProtectionSchedule> {
  await checkSchema(db)
  const markets = await loadMarkets(db)
  const spec = markets.find((market) => market.symbol === symbol)
  if (spec === undefined) {
    const symbols = markets.map((market) => market.symbol).join(', ')
    throw new CommandError(`--market must be one of ${symbols}, not ${symbol}`, EXIT.usage)
  }
  const width = toWei(protection)
  if (width === null || !isPriceProtection(spec.kind, width)) {
    const most = toDecimal(MAX_PRICE_PROTECTION[spec.kind])
    const valid = `above 0 and at most ${most}, with up to ${DECIMALS} decimals, for a ${spec.kind}`
    throw new CommandError(`--protection must be ${valid}, not ${protection}`, EXIT.usage)
  }
  return settings.announceProtection(spec.marketId, width as Rate)
}

export async function setProtection(
  { flags, env }: Context,
  { market, protection }: { readonly market: string; readonly protection: string },
): Promise<string> {
  const connection = await connectDatabase(flags.stack ?? null, env)
  try {
    const { inForce, next } = await announce(connection, market, protection)
    const announced = next && `${toDecimal(next.width)} from ${new Date(next.at).toISOString()} on`
    return `${market}: price protection ${toDecimal(inForce)} in force, announced ${announced}`
  } finally {
    await connection.close()
  }
}
