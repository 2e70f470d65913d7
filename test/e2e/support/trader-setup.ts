/** Sets up one trader of a run on a seeded account: notes, clients, session keys. */
import { id, Wallet } from 'ethers'
import { Client } from '../../../client/client.ts'
import { pages } from '../../../client/queries.ts'
import type { PlacedOrder } from '../../../client/responses.ts'
import { saltSequence } from '../../../client/salts.ts'
import type { Stack } from '../../../stack/stack.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { waitFor } from '../../support/patience.ts'
import type { TraderState } from './checks.ts'
import { KEYS, PROBER } from './commands.ts'
import { BUDGET_MS, TraderNotes } from './trader-notes.ts'

export interface TraderSetup {
  readonly notes: TraderNotes
  /** The first signs with the account's own key, each other with a session key. */
  readonly clients: readonly Client[]
  readonly keys: readonly Wallet[]
  /** A client of its own whose orders all have this salt: other clients may sign meanwhile. */
  readonly withSalt: (salt: bigint) => Client
}

/** Registers the session keys and waits until the exchange has ingested them. Traders that get no commands have none. */
export async function setUpTrader(stack: Stack, at: number, baseUrl: string): Promise<TraderSetup> {
  const account = stack.file.accounts[at]
  if (account === undefined) throw new Error(`the stack has no account ${at}`)
  const { rpc_url: rpcUrl, contracts } = stack.file
  const keys =
    at >= PROBER ? [] : Array.from({ length: KEYS }, (_, key) => new Wallet(id(`session key ${at} ${key}`)))
  const common = {
    baseUrl,
    rpcUrl,
    apiKey: account.api_key,
    privateKey: account.private_key,
    salts: saltSequence(BigInt(at + 1) << 40n),
    http: { budgetMs: BUDGET_MS },
  }
  const clients = [new Client(common), ...keys.map((orderSigner) => new Client({ ...common, orderSigner }))]
  const owner = new Wallet(account.private_key, stack.provider)
  const manager = AccountManager__factory.connect(contracts.account_manager, owner)
  for (const key of keys) await (await manager.registerSessionKey(key.address, 1)).wait()
  const ingestedKeys = () =>
    stack.db
      .selectFrom('session_keys')
      .select('key')
      .where('owner', '=', account.address.toLowerCase())
      .execute()
  await waitFor(ingestedKeys, (rows) => rows.length === keys.length, { budgetMs: BUDGET_MS })
  const { total_e18_raw } = await (clients[0] as Client).account.balance()
  const notes = new TraderNotes(account.address, account.user_id, BigInt(total_e18_raw))
  const withSalt = (salt: bigint) => new Client({ ...common, salts: { next: () => salt } })
  return { notes, clients, keys, withSalt }
}

/** Reads orders, fills, events, positions and balance of the account over HTTP, page by page. Voided fills stay listed as FAILED. */
export async function readAccount({ notes, clients }: TraderSetup): Promise<TraderState> {
  const { account, orders: ownOrders } = clients[0] as Client
  const orders: PlacedOrder[] = []
  for await (const page of pages((cursor) => ownOrders.page({ limit: 37, ...(cursor && { cursor }) })))
    orders.push(...page.orders)
  const fills = []
  for await (const page of pages((cursor) => account.fillPage({ limit: 100, ...(cursor && { cursor }) })))
    fills.push(...page.fills.filter(({ status }) => status !== 'FAILED'))
  const events = []
  for await (const page of pages((cursor) =>
    account.orderEventPage({ limit: 100, ...(cursor && { cursor }) }),
  ))
    events.push(...page.events)
  const [positions, balance] = await Promise.all([account.positions(), account.balance()])
  return { notes, reads: { orders, fills, events, positions, balance } }
}
