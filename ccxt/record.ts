/**
 * `node ccxt/record.ts STACK.json`: records the fixtures in `static/` from a running exchange. Review the difference
 * before you commit it: tests accept what is recorded.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CcxtClass, type CcxtExchange, loadClass } from './build.ts'
import { REQUESTS, RESPONSES, STATIC_CREDENTIALS, type StaticCase } from './cases.ts'

const FOLDER = join(import.meta.dirname, 'static')
const [stackFile] = process.argv.slice(2)
if (stackFile === undefined) throw new Error('usage: node ccxt/record.ts STACK.json')

const write = (kind: string, content: unknown): void => {
  mkdirSync(join(FOLDER, kind), { recursive: true })
  writeFileSync(join(FOLDER, kind, 'clearbatch.json'), `${JSON.stringify(content, null, 2)}\n`)
}

/** Calls of one method follow each other, as in CCXT's files. */
const byMethod = <Entry extends { readonly method: string }>(entries: readonly Entry[]) =>
  Object.fromEntries([...Map.groupBy(entries, ({ method }) => method)])

interface Call {
  readonly url: string
  readonly body: string | undefined
}

/** The request that the method sends; nothing reaches an exchange. */
async function requestOf(exchange: CcxtExchange, { method, input, answers = [] }: StaticCase): Promise<Call> {
  let sent: Call | undefined
  const left = [...answers]
  exchange.fetch = async (url, _method, _headers, body) => {
    sent = { url, body }
    if (left.length > 0) return left.shift()
    throw new Error('recorded')
  }
  await exchange[method]?.(...input).catch(() => {})
  if (sent === undefined) throw new Error(`${method} sent nothing`)
  return sent
}

async function recordRequests(Clearbatch: CcxtClass, markets: unknown) {
  const entries = []
  for (const request of REQUESTS) {
    const { method, description, input, answers } = request
    const exchange = new Clearbatch(STATIC_CREDENTIALS)
    exchange.setMarkets(markets)
    const { url, body } = await requestOf(exchange, request)
    entries.push({ description, method, url, input, ...(answers && { answers }), output: body ?? null })
  }
  return byMethod(entries)
}

async function recordResponses(exchange: CcxtExchange) {
  const entries = []
  const original = exchange.fetch.bind(exchange)
  for (const { method, description, input } of RESPONSES) {
    let httpResponse: unknown
    exchange.fetch = async (...args) => {
      httpResponse = await original(...args)
      return httpResponse
    }
    const parsedResponse = await exchange[method]?.(...input)
    entries.push({ description, method, input, httpResponse, parsedResponse })
  }
  return byMethod(entries)
}

const stack = JSON.parse(readFileSync(stackFile, 'utf8'))
const Clearbatch = await loadClass()
const [{ address, api_key, private_key }] = stack.accounts
const exchange = new Clearbatch({
  apiKey: api_key,
  walletAddress: address,
  privateKey: private_key,
  urls: { api: { rest: stack.base_url } },
})
const markets = await exchange.loadMarkets?.()
await exchange.loadUserId?.()
write('markets', markets)
write('request', {
  exchange: 'clearbatch',
  skipKeys: ['client_request_id'],
  outputType: 'json',
  methods: await recordRequests(Clearbatch, markets),
})
write('response', {
  exchange: 'clearbatch',
  skipKeys: [],
  options: {},
  methods: await recordResponses(exchange),
})
