/** Binds a database to an exchange, so that processes of two exchanges never write to one database. */
import { ConfigError } from '../service/environment.ts'
import type { Db } from './client.ts'

export interface ExchangeAddress {
  readonly chainId: number
  /** The contract `MarginBank`, which no two exchanges share. */
  readonly bank: string
}

/** The first process binds the database. Throws ConfigError if it belongs to another exchange. */
export async function bindExchange(db: Db, exchange: ExchangeAddress): Promise<void> {
  await db
    .insertInto('bound_exchange')
    .values({ chain_id: exchange.chainId, margin_bank: exchange.bank.toLowerCase() })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await checkExchange(db, exchange)
}

/** Throws ConfigError if the database belongs to another exchange. For a process that may not bind it. */
export async function checkExchange(db: Db, { chainId, bank }: ExchangeAddress): Promise<void> {
  const bound = await db.selectFrom('bound_exchange').select(['chain_id', 'margin_bank']).executeTakeFirst()
  if (bound === undefined) return
  const { chain_id, margin_bank } = bound
  if (chain_id === chainId && margin_bank === bank.toLowerCase()) return
  throw new ConfigError(
    `DATABASE_URL is the database of the exchange on chain ${chain_id} with MarginBank ${margin_bank}, but CHAIN_ID is ${chainId} ` +
      `and ADDRESS_MARGIN_BANK is ${bank.toLowerCase()}: use that exchange's settings, or an empty database`,
  )
}
