/** Commands on the account: what it has, and deposits, withdrawals, margin and leverage. */
import type { Client } from '../../client/client.ts'
import type { TransactionType } from '../../client/responses.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

type Plain = (context: Context) => Promise<object>

interface Range {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly limit: number | undefined
}

/** The options that are given. */
export const given = <Options extends object>(options: Options) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Options]?: Exclude<Options[Name], undefined>
  }

const rangeOf = ({ from, to, limit }: Range) => given({ from, to, limit })

async function withAddress(context: Context): Promise<Client> {
  const client = context.reader()
  return context.reader((await client.account.me()).address)
}

export const balance: Plain = async (context) => (await withAddress(context)).account.balance()

export const positions: Plain = async (context) =>
  (await (await withAddress(context)).account.positions()).map((position) => ({
    symbol: position.symbol,
    side: position.side,
    size: position.size,
    pending_size: position.pending_size,
    entry_price: position.entry_price,
    mark_price: position.mark_price,
    unrealized_pnl: position.unrealized_pnl,
    margin: position.margin,
    leverage: position.leverage,
    liquidation_price: position.liquidation_price,
    margin_ratio: position.margin_ratio,
  }))

export async function pnl(
  context: Context,
  args: Range & { readonly interval: '1h' | '1d' | undefined },
): Promise<object> {
  const client = context.reader()
  const page = await client.account.pnlPage({ ...rangeOf(args), ...given({ interval: args.interval }) })
  return { ...page }
}

export async function equity(
  context: Context,
  args: Range & { readonly interval: '1h' | '1d' | undefined; readonly market: string | undefined },
): Promise<object> {
  const client = context.reader()
  const market = args.market === undefined ? undefined : await context.market(client, args.market)
  const options = given({ interval: args.interval, marketId: market?.market_id })
  const page = await client.account.equityPage({ ...rangeOf(args), ...options })
  return { ...page }
}

export async function fills(
  context: Context,
  args: Range & { readonly csv: boolean; readonly market: string | undefined },
): Promise<object | string> {
  const client = await withAddress(context)
  const market = args.market === undefined ? undefined : await context.market(client, args.market)
  const options = { ...rangeOf(args), ...given({ marketId: market?.market_id }) }
  if (args.csv) return client.account.fillsCsv(options)
  const found = await client.account.fills(options)
  return found.map((fill) => ({
    created_at: fill.created_at,
    symbol: fill.symbol,
    side: fill.side,
    price: fill.price,
    quantity: fill.quantity,
    fee: fill.fee,
    realized_pnl: fill.realized_pnl,
    status: fill.status,
    batch_id: fill.batch_id,
    order_id: fill.order_id,
  }))
}

export async function transactions(
  context: Context,
  args: Range & { readonly csv: boolean; readonly type: TransactionType | undefined },
): Promise<object | string> {
  const client = context.reader()
  const options = { ...rangeOf(args), ...given({ type: args.type }) }
  if (args.csv) return client.account.transactionsCsv(options)
  return (await client.account.transactions(options)).map((each) => ({
    created_at: each.created_at,
    transaction_type: each.transaction_type,
    amount: each.amount,
    available_margin_delta: each.available_margin_delta,
    funding_payment_delta: each.funding_payment_delta,
    market_symbol: each.market_symbol,
    id: each.id,
  }))
}

export const faucet: Plain = async (context) => (await context.signing()).bank.faucet()

type Acting = { readonly yes: boolean; readonly positionals: readonly string[] }

export async function deposit(context: Context, { positionals: [amount = ''], yes }: Acting) {
  const client = await context.signing()
  if (!yes) await context.terminal.confirm(`Deposit ${amount} USDM from ${client.account.address}?`)
  const { tx_hash, paid_by, balance: after } = await client.bank.deposit(amount)
  return { tx_hash, paid_by, ...after }
}

/** The state of the withdrawals, once the exchange shows the transaction. */
async function withdrawalsAfter(client: Client, tx_hash: string): Promise<object> {
  for (let tries = 0; ; tries++) {
    const { withdrawals, pending, payable_at } = await client.account.withdrawalPage({ limit: 10 })
    const isShown = withdrawals.some((each) => each.tx_hash === tx_hash || each.paid_tx_hash === tx_hash)
    if (isShown || tries === 50) return { tx_hash, pending, payable_at }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export async function withdraw(context: Context, { positionals: [amount = ''], yes }: Acting) {
  const client = await context.signing()
  if (!yes)
    await context.terminal.confirm(`Request the withdrawal of ${amount} USDM to ${client.account.address}?`)
  return withdrawalsAfter(client, await client.bank.requestWithdrawal(amount))
}

export const completeWithdrawal: Plain = async (context) => {
  const client = await context.signing()
  const { pending, payable_at } = await client.account.withdrawalPage({ limit: 1 })
  if (payable_at === null)
    throw new CommandError(
      'nothing is pending: request a withdrawal first with `clearbatch account withdraw <amount>`',
    )
  if (Date.parse(payable_at) > Date.now())
    throw new CommandError(
      `${pending} USDM are payable from ${payable_at} on; it is ${new Date().toISOString()}`,
    )
  return withdrawalsAfter(client, await client.bank.withdraw())
}

export const withdrawals: Plain = async (context) =>
  (await context.reader().account.withdrawalPage()).withdrawals.map((each) => ({
    status: each.status,
    amount: each.amount,
    requested_at: each.requested_at,
    payable_at: each.payable_at,
    paid_at: each.paid_at,
    tx_hash: each.tx_hash,
  }))

/** `+50` or `50` adds, `-50` removes. */
export async function margin(
  context: Context,
  args: Acting & { readonly market: string; readonly 'up-to': boolean },
) {
  const [change = ''] = args.positionals
  const match = /^([+-]?)(\d+(?:\.\d+)?)$/.exec(change)
  if (match === null)
    throw new CommandError(`the change must be a decimal such as 50 or -50; received ${change}`, EXIT.usage)
  const client = await context.signing()
  const { market_id, symbol } = await context.market(client, args.market)
  const [, sign, amount = ''] = match
  const isRemoval = sign === '-'
  if (!args.yes)
    await context.terminal.confirm(`${isRemoval ? 'Remove' : 'Add'} ${amount} USDM of margin in ${symbol}?`)
  return isRemoval
    ? client.adjustments.removeMargin(market_id, amount, { upTo: args['up-to'] })
    : client.adjustments.addMargin(market_id, amount)
}

export async function leverage(
  context: Context,
  args: Acting & { readonly market: string; readonly 'max-in': string | undefined },
) {
  const [wanted = ''] = args.positionals
  if (!/^[1-9]\d{0,3}$/.test(wanted))
    throw new CommandError(`the leverage must be a whole number from 1; received ${wanted}`, EXIT.usage)
  const client = await context.signing()
  const { market_id, symbol } = await context.market(client, args.market)
  if (!args.yes)
    await context.terminal.confirm(
      `Change the leverage in ${symbol} to ${wanted}? This cancels its open orders.`,
    )
  return client.adjustments.adjustLeverage(market_id, Number(wanted), given({ maxMarginIn: args['max-in'] }))
}

export const adjustments: Plain = async (context) =>
  (await context.reader().adjustments.attempts()).map(({ user_id: _, ...attempt }) => attempt)
