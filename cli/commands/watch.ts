/** `watch`: order book, tape and own orders of a market, redrawn in the terminal as the feed changes. */
import { once } from 'node:events'
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
/** Levels, fills or own orders in a list, at most. */
const MOST_ROWS = 12

interface Screen {
  readonly symbol: string
  readonly book: LocalBook
  readonly trades: LocalTrades
  /** Null without a credential. */
  readonly account: LocalAccount | null
  readonly isCurrent: boolean
  /** Height of the terminal. */
  readonly rows: number
}

const cell = (value: unknown): string => String(value ?? '-').padStart(WIDTH)

/** The lines of the screen, at most as many as the terminal has. */
function screenOf(screen: Screen, terminal: Pick<Terminal, 'colour'>): string[] {
  const { symbol, book, trades, account, isCurrent, rows } = screen
  // Both sides of the book and the fills, with 5 other lines; own orders have 2 more.
  const [lists, others] = account === null ? [3, 5] : [4, 7]
  const depth = Math.max(1, Math.min(MOST_ROWS, Math.floor((rows - others) / lists)))
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
  ].slice(0, rows)
}

/** In a pipe each change is a line of JSON. */
export async function watch(
  context: Context,
  { positionals: [symbol = ''] }: { readonly positionals: readonly string[] },
) {
  const client = openClient(context)
  const market = await context.market(client, symbol)
  const { terminal } = context
  let isDirty = true
  const changed = () => {
    isDirty = true
  }
  const book = client.live.book(market.market_id, changed)
  const trades = client.live.trades(market.market_id, changed)
  const account = hasCredential(context) ? ownAccount(client, changed) : null
  const isScreen = terminal.isScreen && context.format === 'text'
  // A topic may become current without a message: the screen then still shows that it was not.
  let wasCurrent = false
  const draw = (): void => {
    const { isCurrent } = client.live
    const screen = { symbol: harmless(market.symbol), book, trades, account, isCurrent, rows: terminal.rows }
    if (isScreen) {
      if (isDirty || !isCurrent || !wasCurrent) terminal.draw(screenOf(screen, terminal))
    } else if (!isDirty || !isCurrent) return
    else terminal.out(JSON.stringify(lineOf(market.symbol, book, trades)))
    isDirty = false
    wasCurrent = isCurrent
  }
  const close = isScreen
    ? terminal.openScreen(() => {
        changed()
        draw()
      })
    : () => {}
  const timer = setInterval(draw, REDRAW_MS)
  try {
    await ended(context)
  } finally {
    clearInterval(timer)
    close()
  }
  return undefined
}

function ownAccount({ live }: Client, changed: () => void): LocalAccount {
  live.subscribe('user', changed)
  return live.account()
}

/** Resolves when the person ends the command, and rejects when the exchange refuses the feed. */
async function ended({ stopping, feedRefusal }: Context): Promise<void> {
  const signals = [stopping, feedRefusal]
  if (!signals.some(({ aborted }) => aborted))
    await Promise.race(signals.map((signal) => once(signal, 'abort')))
  if (!stopping.aborted) throw feedRefusal.reason
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
