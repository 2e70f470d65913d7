/** `watch`: order book, tape and own orders of a market, redrawn in the terminal as the feed changes. */
import type { Client } from '../../client/client.ts'
import type { LocalAccount } from '../../client/live/local-account.ts'
import type { LocalBook } from '../../client/live/local-book.ts'
import type { LocalTrades } from '../../client/live/local-trades.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { harmless } from '../print.ts'
import type { Terminal } from '../terminal.ts'

/** Most redraws per second: 5. */
const REDRAW_MS = 200
const WIDTH = 14
const CLEAR = '\x1b[H\x1b[J'

interface Screen {
  readonly symbol: string
  readonly book: LocalBook
  readonly trades: LocalTrades
  /** Null without a credential. */
  readonly account: LocalAccount | null
  readonly isCurrent: boolean
  readonly rows: number
}

const cell = (value: unknown): string => String(value ?? '-').padStart(WIDTH)

/** The lines of the screen. Pure, for the terminal that colours them. */
export function screenOf(screen: Screen, terminal: Pick<Terminal, 'colour'>): string {
  const { symbol, book, trades, account, isCurrent, rows } = screen
  const depth = Math.max(3, Math.min(12, Math.floor((rows - 10) / 3)))
  const level = (side: 'LONG' | 'SHORT') => book.levels(side).slice(0, depth)
  const row = ({ price, quantity }: { price: number; quantity: number }, colour: 'red' | 'green') =>
    terminal.colour(`${cell(price)}${cell(quantity)}`, colour)
  const own = account?.orders.filter((order) => order.market_id === book.marketId) ?? []
  return [
    `${terminal.colour(symbol, 'bold')}  ${new Date().toISOString()}${isCurrent ? '' : terminal.colour('  connecting', 'red')}`,
    terminal.colour(`${cell('price')}${cell('quantity')}`, 'dim'),
    ...level('SHORT')
      .toReversed()
      .map((each) => row(each, 'red')),
    terminal.colour('-'.repeat(2 * WIDTH), 'dim'),
    ...level('LONG').map((each) => row(each, 'green')),
    '',
    terminal.colour('last fills', 'dim'),
    ...trades.fills
      .slice(-depth)
      .toReversed()
      .map((fill) => `${row(fill, fill.side === 'LONG' ? 'green' : 'red')}  ${fill.created_at}`),
    ...(account === null
      ? []
      : [
          '',
          terminal.colour(`own orders: ${own.length}`, 'dim'),
          ...own
            .slice(0, depth)
            .map(
              ({ side, price, remaining_quantity, status }) =>
                row({ price, quantity: remaining_quantity }, side === 'LONG' ? 'green' : 'red') +
                `  ${status}`,
            ),
        ]),
  ].join('\n')
}

/** In a pipe each change of the book is a line of JSON. */
export async function watch(
  context: Context,
  { positionals: [symbol = ''] }: { readonly positionals: readonly string[] },
) {
  const client = openClient(context)
  const market = await context.market(client, symbol)
  const isScreen = context.terminal.isScreen && context.format === 'text'
  let isDirty = true
  const changed = () => {
    isDirty = true
  }
  const book = client.live.book(market.market_id, changed)
  const trades = client.live.trades(market.market_id, changed)
  const account = hasCredential(context) ? client.live.account() : null
  const draw = (): void => {
    if (!isDirty && client.live.isCurrent) return
    isDirty = false
    if (isScreen) {
      const screen = {
        symbol: harmless(market.symbol),
        book,
        trades,
        account,
        isCurrent: client.live.isCurrent,
      }
      context.terminal.raw(CLEAR + screenOf({ ...screen, rows: context.terminal.rows }, context.terminal))
    } else if (client.live.isCurrent)
      context.terminal.out(JSON.stringify(lineOf(market.symbol, book, trades)))
  }
  const timer = setInterval(draw, REDRAW_MS)
  await new Promise<void>((resolve) => {
    if (context.stopping.aborted) resolve()
    context.stopping.addEventListener('abort', () => resolve(), { once: true })
  })
  clearInterval(timer)
  if (isScreen) context.terminal.raw('\n')
  return undefined
}

const lineOf = (symbol: string, book: LocalBook, trades: LocalTrades) => ({
  symbol,
  time: new Date().toISOString(),
  bids: book
    .levels('LONG')
    .slice(0, 10)
    .map(({ price, quantity }) => [price, quantity]),
  asks: book
    .levels('SHORT')
    .slice(0, 10)
    .map(({ price, quantity }) => [price, quantity]),
  last_fill: trades.fills.at(-1) ?? null,
})

function hasCredential(context: Context): boolean {
  try {
    context.authorization()
    return true
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === EXIT.unauthorized) return false
    throw error
  }
}

const openClient = (context: Context): Client =>
  hasCredential(context) ? context.reader() : context.anonymous()
