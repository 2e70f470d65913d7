/** A complete exchange for one test file: `before` starts it in a folder of its own, `after` stops it and deletes the folder. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Client } from '../../../client/client.ts'
import { fromE18, toE18 } from '../../../client/decimals.ts'
import type { Market, PlacedOrder, Placement } from '../../../client/responses.ts'
import type { Db } from '../../../db/client.ts'
import { audit, settled } from '../../../stack/audit/audit.ts'
import { type VerifiedProofs, verifyProofs } from '../../../stack/audit/proofs.ts'
import type { StackOptions } from '../../../stack/options.ts'
import { ShadowRun } from '../../../stack/shadow/shadow-run.ts'
import { type Stack, startStack } from '../../../stack/stack.ts'
import { waitFor } from '../../support/patience.ts'

export interface TestStack {
  readonly stack: Stack
  /** Folder of the log of each process. */
  readonly logDir: string
  /** A client with the seeded account of this index. */
  trader(index: number): Client
  /** Differences between chain, journal, write side, read model and REST once no order is settling. */
  differences(): Promise<readonly string[]>
}

const START_LIMIT_MS = 180_000

/** `backstop`: with one, positions that fall below their margin requirement can be inherited. */
export function useStack({ backstop = false }: Pick<StackOptions, 'backstop'> = {}): TestStack {
  let running: Stack | undefined
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-e2e-'))
  const traders = new Map<number, Client>()
  const stack = (): Stack => {
    if (running === undefined) throw new Error('the stack runs from before() to after()')
    return running
  }
  before(async function () {
    this.timeout(START_LIMIT_MS)
    const options = { port: 0, dataDir, fresh: false, bots: false, backstop }
    running = await startStack(options, () => {})
  })
  after(async function () {
    this.timeout(START_LIMIT_MS)
    for (const client of traders.values()) client.close()
    const differences = running === undefined ? [] : await new ShadowRun(running.db).compare()
    await running?.stop()
    rmSync(dataDir, { recursive: true, force: true })
    expect(differences, 'the tables equal the fold of the journal').to.deep.equal([])
  })
  return {
    get stack() {
      return stack()
    },
    logDir: join(dataDir, 'logs'),
    trader(index) {
      const existing = traders.get(index)
      if (existing !== undefined) return existing
      const created = traderOn(stack(), index)
      traders.set(index, created)
      return created
    },
    differences: () => differencesOf(stack()),
  }
}

type AuditedStack = Pick<Stack, 'db' | 'provider' | 'specs' | 'file'>

/**
 * Differences between chain, journal, write side, read model, REST and the proofs of batches once no order is settling. `areProofsKept`: false where
 * so much time has passed that the exchange deletes their inputs.
 */
export async function differencesOf(
  stack: AuditedStack,
  { areProofsKept = true } = {},
): Promise<readonly string[]> {
  const { db, provider, specs, file } = stack
  await settled(db)
  const { contracts, base_url: baseUrl, accounts } = file
  const { differences } = await audit({
    db,
    provider,
    specs,
    ...{ marginBank: contracts.margin_bank, forwarder: contracts.forwarder },
    baseUrl,
    accounts,
  })
  const proofs = areProofsKept ? await proofDifferences(stack) : (await newestProofs(stack)).problems
  return [...differences, ...proofs]
}

/** Problems of the newest proofs. Inputs are kept for days, so each batch of a test has its proof. */
export async function proofDifferences(stack: Pick<Stack, 'file' | 'specs'>): Promise<readonly string[]> {
  const { problems, unavailable } = await newestProofs(stack)
  return [...problems, ...unavailable.map((source) => `${source}: the exchange no longer has this proof`)]
}

/** Newest batches of each market. */
const PROOFS = 50

export const newestProofs = ({ file, specs }: Pick<Stack, 'file' | 'specs'>): Promise<VerifiedProofs> =>
  verifyProofs(file, { marketIds: specs.map(({ marketId }) => marketId), most: PROOFS })

export function traderOn({ file }: Pick<Stack, 'file'>, index: number, budgetMs = 30_000): Client {
  const account = file.accounts[index]
  if (account === undefined) throw new Error(`the stack has no account ${index}`)
  return new Client({
    baseUrl: file.base_url,
    rpcUrl: file.rpc_url,
    apiKey: account.api_key,
    privateKey: account.private_key,
    http: { budgetMs },
  })
}

/** The market's oracle price rounded down to a tick, plus `moved` ticks. */
export async function nearOracle(client: Client, marketId: number, moved = 0): Promise<string> {
  const { oracle_price_e18_raw, tick_size_e18_raw } = await waitFor(
    () => client.marketData.market(marketId),
    (market: Market) => market.oracle_price_e18_raw !== null,
  )
  const tick = BigInt(tick_size_e18_raw)
  return fromE18((BigInt(oracle_price_e18_raw ?? 0) / tick + BigInt(moved)) * tick)
}

/** The price `moved` ticks above `price`. */
export const ticksFrom = (price: string, tickE18: string, moved: number): string =>
  fromE18(toE18(price) + BigInt(moved) * BigInt(tickE18))

export const isDone = ({ status }: PlacedOrder): boolean =>
  status === 'FILLED' || status === 'CANCELLED' || status === 'EXPIRED'

/** Places a buy and a sell at one price. Returns both orders once they have ended. */
export async function trade(
  buyer: Client,
  seller: Client,
  { marketId, price, quantity }: { marketId: number; price: string; quantity: string },
): Promise<{ readonly buy: PlacedOrder; readonly sell: PlacedOrder; readonly placed: readonly Placement[] }> {
  const buy = await buyer.orders.place({ marketId, side: 'LONG', price, quantity, leverage: 2 })
  const sell = await seller.orders.place({ marketId, side: 'SHORT', price, quantity, leverage: 2 })
  const [bought, sold] = await Promise.all([
    buyer.orders.waitFor(buy, isDone, 60_000),
    seller.orders.waitFor(sell, isDone, 60_000),
  ])
  return { buy: bought, sell: sold, placed: [buy, sell] }
}

/** The read model as comparable text, without epochs and arrivals, which a rebuild changes. */
export async function readModel(db: Db): Promise<Record<string, string>> {
  const tables = [
    ...(['read.users', 'read.markets', 'read.orders', 'read.order_events', 'read.fills'] as const),
    ...(['read.positions', 'read.balances', 'read.book_levels', 'read.batches'] as const),
    ...(['read.funding_rates', 'read.candles', 'read.price_candles', 'read.account_transactions'] as const),
    'read.withdrawal_events' as const,
  ]
  const content: Record<string, string> = {}
  for (const table of tables) {
    const rows = await db.selectFrom(table).selectAll().execute()
    const lines = rows.map(({ arrival, ...row }: Record<string, unknown>) =>
      JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)),
    )
    content[table] = lines.sort().join('\n')
  }
  return content
}
