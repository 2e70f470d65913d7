/** What one trader of a run has: his notes, his connections, his session keys. */

import { id, Wallet } from 'ethers'
import { Client } from '../../../client/client.ts'
import { pages } from '../../../client/queries.ts'
import type { PlacedOrder } from '../../../client/responses.ts'
import type { SaltSequence } from '../../../client/salts.ts'
import { waitFor } from '../../../client/wait-for.ts'
import type { Stack } from '../../../stack/stack.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { KEYS, TRADERS } from './commands.ts'
import type { Trader } from './laws.ts'
import { BUDGET_MS, Paper } from './paper.ts'

export interface Desk {
  readonly paper: Paper
  /** The trader himself, then his session keys. */
  readonly clients: readonly Client[]
  readonly keys: readonly Wallet[]
  readonly salts: SaltSequence & { repeat: bigint | null }
}

/** Gives the next salt, or once the one that it is told to repeat. */
function repeatableSalts(start: bigint): Desk['salts'] {
  let next = start
  return {
    repeat: null,
    next() {
      const { repeat } = this
      this.repeat = null
      return repeat ?? next++
    },
  }
}

/** A trader on a seeded account, with session keys that are registered. The last one, who looks after the batches, has none. */
export async function openDesk(stack: Stack, at: number, baseUrl: string): Promise<Desk> {
  const account = stack.file.accounts[at]
  if (account === undefined) throw new Error(`the stack has no account ${at}`)
  const { rpc_url: rpcUrl, contracts } = stack.file
  const keys =
    at === TRADERS ? [] : Array.from({ length: KEYS }, (_, key) => new Wallet(id(`session key ${at} ${key}`)))
  const salts = repeatableSalts(BigInt(at + 1) << 40n)
  const common = {
    baseUrl,
    rpcUrl,
    apiKey: account.api_key,
    privateKey: account.private_key,
    salts,
    http: { budgetMs: BUDGET_MS },
  }
  const clients = [new Client(common), ...keys.map((orderSigner) => new Client({ ...common, orderSigner }))]
  const owner = new Wallet(account.private_key, stack.provider)
  const manager = AccountManager__factory.connect(contracts.account_manager, owner)
  for (const key of keys) await (await manager.registerSessionKey(key.address, 1)).wait()
  const client = clients[0] as Client
  const observed = () =>
    stack.db
      .selectFrom('session_keys')
      .select('key')
      .where('owner', '=', account.address.toLowerCase())
      .execute()
  await waitFor(observed, (rows) => rows.length === keys.length, { budgetMs: BUDGET_MS })
  const { total_e18_raw } = await client.account.balance()
  const paper = new Paper(account.address, account.user_id, BigInt(total_e18_raw))
  return { paper, clients, keys, salts }
}

/** Everything that the exchange tells this trader, in pages. */
export async function toldTo({ paper, clients }: Desk): Promise<Trader> {
  const client = clients[0] as Client
  const orders: PlacedOrder[] = []
  for await (const page of pages((cursor) => client.orders.page({ limit: 37, ...(cursor && { cursor }) })))
    orders.push(...page.orders)
  const fills = []
  for await (const page of pages((cursor) =>
    client.account.fillPage({ limit: 100, ...(cursor && { cursor }) }),
  ))
    fills.push(...page.fills)
  const events = []
  for await (const page of pages((cursor) =>
    client.account.orderEventPage({ limit: 100, ...(cursor && { cursor }) }),
  ))
    events.push(...page.events)
  const [positions, balance] = await Promise.all([client.account.positions(), client.account.balance()])
  return { paper, told: { orders, fills, events, positions, balance } }
}
