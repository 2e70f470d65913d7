/** All commands of traders, in the order of help. Those of the repository are in `repository/table.ts`. */
import { HISTORY_KINDS } from '../domain/market-data/history-kind.ts'
import { decimal, oneOf, required, text, toggle, wholeNumber, withDefault } from '../service/command-line.ts'
import { ACCOUNT, AUTH } from './account-table.ts'
import { type Command, command } from './command.ts'
import { FLAGS, INTERVALS, MARKET, ORDER, PREVIEW, RANGE, SIZE, STATUSES } from './flags.ts'

const CHECKS: readonly Command[] = [
  command('announcements', {
    help: 'List announcements of the operator, newest first',
    kind: 'read',
    mcp: true,
    example: 'clearbatch announcements',
    load: async () => (await import('./commands/market.ts')).announcements,
  }),
  command('builders', {
    help: 'List volume, fills and orders by builder and day, largest volume first',
    flags: {
      day: text('<day>', 'a day in UTC such as 2026-11-22 (default the current day)'),
      builder: text('<label>', 'the days of this builder, newest first'),
      limit: withDefault(wholeNumber('most rows', { least: 1, most: 1000 }), 20),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch builders --builder my-terminal',
    load: async () => (await import('./commands/market.ts')).builders,
  }),
  command('status', {
    help: 'Show whether the exchange works, and its markets',
    kind: 'read',
    mcp: true,
    example: 'clearbatch status',
    load: async () => (await import('./commands/doctor.ts')).status,
  }),
  command('doctor', {
    help: 'Check everything that trading needs, and name the remedy of each failure',
    kind: 'read',
    mcp: true,
    example: 'clearbatch doctor',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  }),
]

const MARKETS: readonly Command[] = [
  command('market list', {
    help: 'List the markets with their best quotes',
    kind: 'read',
    mcp: true,
    example: 'clearbatch market list',
    load: async () => (await import('./commands/market.ts')).list,
  }),
  command('market show', {
    help: 'Show the terms and prices of a market',
    positionals: '<market>',
    kind: 'read',
    mcp: true,
    example: 'clearbatch market show BTC-PERP',
    load: async () => (await import('./commands/market.ts')).show,
  }),
  command('market book', {
    help: 'Show the order book',
    positionals: '<market>',
    flags: { depth: withDefault(wholeNumber('levels of each side', { least: 1, most: 500 }), 10) },
    kind: 'read',
    mcp: true,
    example: 'clearbatch market book BTC-PERP --depth 5',
    load: async () => (await import('./commands/market.ts')).book,
  }),
  command('market batches', {
    help: 'List the batches of a market and what decided their prices, newest first',
    positionals: '<market>',
    flags: RANGE,
    kind: 'read',
    mcp: true,
    example: 'clearbatch market batches BTC-PERP --limit 10',
    load: async () => (await import('./commands/market.ts')).batches,
  }),
  command('market candles', {
    help: 'List candles, newest first',
    positionals: '<market>',
    flags: {
      ...RANGE,
      interval: withDefault(oneOf(INTERVALS, 'length of a candle'), '1m'),
      price: withDefault(oneOf(['last', 'mark', 'oracle'], 'of which price'), 'last'),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch market candles BTC-PERP --interval 1h --limit 24',
    load: async () => (await import('./commands/market.ts')).candles,
  }),
  command('watch', {
    help: 'Show book, last fills and own orders of a market, redrawn as they change; JSON lines in a pipe',
    positionals: '<market>',
    kind: 'read',
    example: 'clearbatch watch BTC-PERP',
    load: async () => (await import('./commands/watch.ts')).watch,
  }),
]

const ORDERS: readonly Command[] = [
  command('order place', {
    help: 'Show the preview of an order, ask, and place it',
    flags: { ...ORDER, ...PREVIEW },
    kind: 'trade',
    mcp: true,
    example: 'clearbatch order place --market BTC-PERP --side LONG --quantity 0.01 --price 60000',
    load: async () => (await import('./commands/order.ts')).place,
  }),
  command('order replace', {
    help: 'Replace an order (hash, id or label) by one with another price or quantity, or do nothing',
    positionals: '<order>',
    flags: {
      price: decimal('new limit price (default: as before)'),
      quantity: decimal('new quantity, with what is filled (default: as signed before)'),
      expires: ORDER.expires,
      label: text('<text>', 'another label (default: the one of the order)'),
      ...FLAGS,
      'if-filled': oneOf(
        ['refuse', 'reduce'],
        'if a part is filled: do nothing (default), or reduce the new order by it',
      ),
      ...PREVIEW,
    },
    kind: 'trade',
    example: 'clearbatch order replace 1-42 --price 60100 --post-only --expires 60',
    load: async () => (await import('./commands/order.ts')).replace,
  }),
  command('order cancel', {
    help: 'Cancel orders by hash, id or label, or all',
    positionals: '[order...]',
    flags: {
      all: toggle('cancel every live order'),
      market: text('<symbol>', 'with --all: only of this market'),
    },
    kind: 'trade',
    mcp: true,
    example: 'clearbatch order cancel --all --market BTC-PERP',
    load: async () => (await import('./commands/order.ts')).cancel,
  }),
  command('order list', {
    help: 'List orders, newest first',
    flags: {
      status: oneOf(STATUSES, 'only with this status'),
      market: text('<symbol>', 'only of this market'),
      limit: wholeNumber('most orders', { least: 1, most: 1000 }),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch order list --status OPEN',
    load: async () => (await import('./commands/order.ts')).list,
  }),
  command('order explain', {
    help: 'Show what happened to an order: events, fills, their settlement, and why it ended',
    positionals: '<order>',
    kind: 'read',
    mcp: true,
    example: 'clearbatch order explain 1-42',
    load: async () => (await import('./commands/order.ts')).explain,
  }),
  command('twap', {
    help: 'Trade a quantity in equal market orders over time. The same command continues after an interruption',
    flags: {
      ...SIZE,
      ...PREVIEW,
      slices: required(wholeNumber('number of orders', { least: 2, most: 1000 })),
      interval: required(wholeNumber('seconds from one order to the next', { least: 1, most: 86_400 })),
      state: text(
        '<file>',
        'where the progress is stored (default: by account and plan in the state folder)',
      ),
    },
    kind: 'trade',
    example: 'clearbatch twap --market BTC-PERP --side LONG --quantity 0.5 --slices 10 --interval 30',
    load: async () => (await import('./commands/twap.ts')).twap,
  }),
  command('scale', {
    help: 'Place a ladder of limit orders between two prices, all or none',
    flags: {
      ...SIZE,
      ...PREVIEW,
      from: required(decimal('price of the first order')),
      to: required(decimal('price of the last order')),
      count: withDefault(wholeNumber('number of orders', { least: 2, most: 50 }), 5),
    },
    kind: 'trade',
    example:
      'clearbatch scale --market BTC-PERP --side LONG --quantity 0.5 --from 60000 --to 58000 --count 5',
    load: async () => (await import('./commands/order.ts')).scale,
  }),
  command('bracket', {
    help: 'Place an entry with take profit and stop loss, all or none; the exits wait for the entry and end together',
    flags: {
      ...SIZE,
      ...PREVIEW,
      price: decimal('limit price of the entry; without it a market order'),
      expires: ORDER.expires,
      label: ORDER.label,
      'take-profit': decimal('trigger of the take profit'),
      'stop-loss': decimal('trigger of the stop loss'),
    },
    kind: 'trade',
    example:
      'clearbatch bracket --market BTC-PERP --side LONG --quantity 0.01 --take-profit 70000 --stop-loss 55000',
    load: async () => (await import('./commands/order.ts')).bracket,
  }),
  command('close', {
    help: 'Close positions by reduce-only market orders',
    flags: {
      market: text('<symbol>', 'the position in this market'),
      all: toggle('every position'),
      quantity: decimal('with --market: close at most this much (default: the whole position)'),
      ...PREVIEW,
    },
    kind: 'trade',
    example: 'clearbatch close --all',
    load: async () => (await import('./commands/order.ts')).close,
  }),
  command('sign', {
    help: 'Print the signed body of `POST /v0/orders`, and send nothing',
    flags: ORDER,
    kind: 'tool',
    example: 'clearbatch sign --market BTC-PERP --side LONG --quantity 0.01 > order.json',
    load: async () => (await import('./commands/order.ts')).sign,
  }),
]

const DATA: readonly Command[] = [
  command('data download', {
    help: 'Download public history as CSV, newest first. The same command continues after an interruption',
    positionals: '<fills|auctions|candles|funding>',
    flags: {
      ...MARKET,
      from: required(text('<time>', 'first time, such as 2026-11-22')),
      to: required(text('<time>', 'time after the last row')),
      output: required(text('<file>', 'file to write, .csv.gz or .csv')),
      interval: withDefault(oneOf(INTERVALS, 'length of a candle'), '1m'),
      price: withDefault(oneOf(['last', 'mark', 'oracle'], 'price of candles'), 'last'),
    },
    kind: 'tool',
    example:
      'clearbatch data download fills --market BTC-PERP --from 2026-11-21 --to 2026-11-22 --output fills.csv.gz',
    load: async () => (await import('./commands/data.ts')).download,
  }),
  command('history list', {
    help: 'List the files of the public history, one per kind, market and day, newest first',
    flags: {
      kind: oneOf(HISTORY_KINDS, 'only files of this kind'),
      market: text('<symbol>', 'only files of this market'),
      from: text('<day>', 'only this day and later ones, such as 2026-11-22'),
      to: text('<day>', 'only days before this one'),
      limit: withDefault(wholeNumber('most files', { least: 1, most: 1000 }), 20),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch history list --market BTC-PERP --kind fills',
    load: async () => (await import('./commands/history.ts')).list,
  }),
  command('history get', {
    help: 'Download a file of the public history, and check its digest',
    positionals: '<fills|auctions|candles|funding> <day>',
    flags: { ...MARKET, output: required(text('<file>', 'file to write, .csv.gz')) },
    kind: 'tool',
    example: 'clearbatch history get fills 2026-11-21 --market BTC-PERP --output fills.csv.gz',
    load: async () => (await import('./commands/history.ts')).get,
  }),
  command('batch show', {
    help: 'Print the proof of a batch',
    positionals: '<market> <batch>',
    kind: 'read',
    mcp: true,
    example: 'clearbatch batch show BTC-PERP 7 --json > proof.json',
    load: async () => (await import('./commands/batch.ts')).show,
  }),
  command('batch explain', {
    help: 'Explain the price of a batch: demand and supply, the rule that decided, what each order got',
    positionals: '<market|url|file> [batch]',
    flags: { svg: text('<file>', 'write demand and supply as a picture') },
    kind: 'read',
    mcp: true,
    example: 'clearbatch batch explain BTC-PERP/42 --svg batch.svg',
    load: async () => (await import('./commands/explain-batch.ts')).explain,
  }),
  command('batch verify', {
    help: 'Recompute a batch from its proof and compare it with the chain',
    positionals: '<market|url|file> [batch]',
    flags: {
      trader: text('<address>', "address that the market's contract must have"),
      order: text(
        '<hash or file>',
        'an own order that must be in the batch: its hash, or the answer to its placement',
      ),
      salt: text('<salt>', 'its salt, from GET /v0/orders/:order_id/commitment'),
      follow: toggle('verify every batch of the market as it is decided'),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch batch verify BTC-PERP 7',
    load: async () => (await import('./commands/batch.ts')).verify,
  }),
]

const TOOLS: readonly Command[] = [
  command('mcp', {
    help: 'Serve an assistant over stdio by the Model Context Protocol; reads only unless --trade is given',
    flags: {
      trade: toggle('offer placing and cancelling; needs --max-notional and --markets'),
      'max-notional': decimal('most USDM of one order, and of all orders of this process together'),
      markets: text('<symbols>', 'markets in which it may trade, separated by commas'),
    },
    kind: 'tool',
    example: 'clearbatch mcp --trade --max-notional 500 --markets BTC-PERP',
    load: async () => {
      const { serve } = await import('./mcp/server.ts')
      return (context, options) => serve(context, options, COMMANDS)
    },
  }),
  command('completion', {
    help: 'Print the completion script of a shell',
    positionals: '<bash|zsh|fish>',
    kind: 'tool',
    example: 'source <(clearbatch completion bash)',
    load: async () => (await import('./commands/completion.ts')).completion,
  }),
]

export const COMMANDS: readonly Command[] = [
  ...CHECKS,
  ...AUTH,
  ...ACCOUNT,
  ...MARKETS,
  ...ORDERS,
  ...DATA,
  ...TOOLS,
]
