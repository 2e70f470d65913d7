// A market maker: one quote on each side of the mark, moved with it, until you stop it with Ctrl-C.
// node quickstart.mjs <stack.json> [market] [seconds]
import { readFileSync } from 'node:fs'
import { ClearbatchError, Client, roundPrice, roundQuantity } from 'clearbatch'

const [file = '.clearbatch/stack.json', symbol = 'BTC-PERP', seconds = 'Infinity'] = process.argv.slice(2)
const HALF_SPREAD = 0.002 // of the mark
const REQUOTE = 0.0005 // of the mark: smaller moves leave the quotes
const NOTIONAL = 200 // USDM per side
const SWITCH_SECONDS = 15 // the exchange cancels all orders if this program is silent for longer

const stack = JSON.parse(readFileSync(file, 'utf8'))
const { api_key: apiKey, private_key: privateKey } = stack.accounts[0]
const stop = new AbortController()
const client = new Client({
  baseUrl: stack.base_url,
  apiKey,
  privateKey,
  onLiveError: (error) => fail(error),
})

process.once('SIGINT', () => stop.abort())
process.once('SIGTERM', () => stop.abort())
const end = Date.now() + Number(seconds) * 1000

function fail(error) {
  console.error(error instanceof ClearbatchError ? `${error.code}: ${error.message}` : error)
  process.exitCode = 1
  stop.abort()
}

const markets = await client.marketData.markets()
const market = markets.find((each) => each.symbol === symbol)
if (market === undefined)
  throw new Error(`${symbol} is none of ${markets.map((each) => each.symbol).join(', ')}`)
const marketId = market.market_id
const account = client.live.account() // follows fills, positions and orders, also across lost connections
const started = new Date().toISOString()
const fillCount = () => account.fills.filter(({ created_at }) => created_at >= started).length // without earlier ones

const quantityAt = (mark) => roundQuantity(market, (NOTIONAL / mark).toFixed(12))
const quotesAt = (mark) =>
  ['LONG', 'SHORT'].map((side) => {
    const wanted = mark * (side === 'LONG' ? 1 - HALF_SPREAD : 1 + HALF_SPREAD)
    return {
      marketId,
      side,
      price: roundPrice(market, wanted.toFixed(9), side),
      quantity: quantityAt(mark),
      leverage: 2,
    }
  })

/** The first quotes, and again when the mark has moved or a quote has filled. */
async function requote(mark) {
  await client.orders.cancelAll({ marketId, reason: 'requote' })
  const { results } = (await client.orders.placeBatch(quotesAt(mark))).orThrow()
  return { mark, hashes: results.map(({ order }) => order.order_hash) }
}

const isLive = (hash) =>
  account.orders.some(({ order_hash, status }) => order_hash === hash && status === 'OPEN')
const hasMoved = (quoted, mark) => Math.abs(mark / quoted.mark - 1) > REQUOTE

let quoted = null
let rounds = 0
let loops = 0
let interrupted = false
while (!stop.signal.aborted && Date.now() < end) {
  try {
    await client.orders.cancelAllAfter(SWITCH_SECONDS) // the dead-man switch: armed again in every round
    const { mark_price: mark } = await client.marketData.market(marketId)
    if (
      mark !== null &&
      (quoted === null || hasMoved(quoted, mark) || (client.live.isCurrent && !quoted.hashes.every(isLive)))
    ) {
      quoted = await requote(mark)
      rounds++
      console.log(`quotes around ${mark}, ${fillCount()} fills so far`)
    }
    // For demonstration: the feed loses its connection once, and resumes by itself.
    if (++loops === 10) interrupted = client.live.interrupt()
  } catch (error) {
    // The exchange says whether trying again can succeed. A request with an unknown outcome is repeated safely: all here are idempotent.
    if (!(error instanceof ClearbatchError && error.retryable)) fail(error)
    quoted = null
  }
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, 1000)
    stop.signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}

const { cancelled_count: count } = await client.orders.cancelAll({ reason: 'stopped' })
await client.orders.cancelAllAfter(0)
const current = client.live.isCurrent ? 'current' : 'behind'
console.log(
  `stopped: ${rounds} rounds, ${count} orders cancelled, ${fillCount()} fills, feed ${current}, interrupted ${interrupted}`,
)
client.close()
