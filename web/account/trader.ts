/** The signed-in account: its reads, its live topic, and the parts of the client that sign with the session key. */
import { effect, signal } from '@preact/signals'
import { Account } from '../../client/account.ts'
import { Adjustments } from '../../client/adjustments.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { HttpSession } from '../../client/http-session.ts'
import { LiveTopics } from '../../client/live/live-topics.ts'
import type { LocalAccount } from '../../client/live/local-account.ts'
import type { TopicMessage, UserData } from '../../client/live/messages.ts'
import { OrderFactory } from '../../client/order-factory.ts'
import { OrderRequests } from '../../client/order-requests.ts'
import type { Fill, PlacedOrder } from '../../client/responses.ts'
import { saltSequence } from '../../client/salts.ts'
import type { DigestSigner } from '../../client/signing.ts'
import { config } from '../base/config.ts'
import { toast } from '../base/toasts.ts'
import { marketData } from '../feed/exchange.ts'
import { perFrame } from '../feed/frames.ts'
import * as shown from './live-account.ts'
import { notifyEnds, notifyFills } from './notifications.ts'
import { end, httpOf, type Session, session } from './session.ts'
import { currentSigner, forgetKey, keyState, loadKey } from './session-key.ts'

export interface Trader {
  readonly session: Session
  readonly http: HttpSession
  readonly account: Account
  readonly orders: OrderRequests
  readonly adjustments: Adjustments
  readonly live: LiveTopics
  readonly local: LocalAccount
}

export const trader = signal<Trader | null>(null)

/** Signs by the key of the moment, which the user may lock or replace. */
const signer: DigestSigner = { signDigest: async (digest) => currentSigner().signDigest(digest) }

const POSITION_POLL_MS = 5_000

function open(opened: Session): Trader {
  const http = httpOf(opened)
  const account = new Account(http, opened.address)
  const factory = new OrderFactory({ account, marketData, signer, salts: saltSequence() })
  const orders = new OrderRequests(http, account, factory)
  const live = new LiveTopics({
    baseUrl: config.apiUrl,
    authorization: opened.authorization,
    readOrder: ({ order, read_after }) => orders.get(order.order_id, { readAfter: read_after }),
    onError: ({ status, message }) => {
      if (status === 401) void end('The exchange no longer accepts the credential.')
      else toast({ id: 'live', kind: 'bad', title: 'The account feed refused a request', text: message })
    },
  })
  const adjustments = new Adjustments({
    http,
    account,
    marketData,
    signer,
    nonces: saltSequence(),
  })
  return { session: opened, http, account, orders, adjustments, live, local: live.account() }
}

const isEnded = ({ status }: PlacedOrder): boolean =>
  status === 'FILLED' || status === 'CANCELLED' || status === 'EXPIRED'

/** Positions have values at prices, which only REST computes. */
async function readPositions({ account, session: { address } }: Trader): Promise<void> {
  try {
    const [positions, balance] = await Promise.all([account.positions(), account.balance()])
    if (trader.value?.session.address !== address) return
    shown.positions.value = positions.filter(
      ({ size_e18_raw, pending_size_e18_raw }) => size_e18_raw !== '0' || pending_size_e18_raw !== '0',
    )
    shown.balance.value = balance
  } catch (error) {
    if (error instanceof ClearbatchError && error.status === 401)
      await end('The exchange no longer accepts the credential.')
  }
}

/** One read at a time: what arrives meanwhile is answered by one more read after it. */
function positionReader(current: Trader): () => void {
  let [isReading, isWanted] = [false, false]
  const read = async (): Promise<void> => {
    if (isReading) {
      isWanted = true
      return
    }
    isReading = true
    await readPositions(current)
    isReading = false
    if (!isWanted) return
    isWanted = false
    void read()
  }
  return () => void read()
}

function follow(current: Trader): () => void {
  const { live, local } = current
  const read = positionReader(current)
  const publish = perFrame(() => {
    if (trader.value !== current) return
    shown.openOrders.value = local.orders.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
    shown.fills.value = local.fills.toReversed()
    shown.transactions.value = local.transactions.toReversed()
    shown.freeBalance.value = local.balance
    read()
  })
  const leave = live.subscribe('user', (message) => {
    const { type, data } = message as TopicMessage<UserData>
    const failed = (data.fills ?? []).filter(({ status }) => status === 'FAILED')
    noteVoided(current, [...failed, ...removedFills(data)])
    if (type === 'update') {
      notifyFills(data.fills ?? [])
      const ended = (data.orders ?? []).filter(isEnded)
      notifyEnds(ended)
      if (ended.length > 0) shown.endings.value += 1
    }
    publish()
  })
  const timer = setInterval(read, POSITION_POLL_MS)
  return () => {
    leave()
    clearInterval(timer)
    live.close()
  }
}

/** Own fills of parts that no longer count, as they were shown before. */
const removedFills = ({ removed_parts: parts = [] }: UserData): readonly Fill[] =>
  shown.fills.value.filter((fill) =>
    parts.some(
      ({ market_id, batch_id, part }) =>
        fill.market_id === market_id && fill.batch_id === batch_id && fill.part === part,
    ),
  )

const MOST_VOIDED = 100

function noteVoided({ orders }: Trader, fills: readonly Fill[]): void {
  const known = new Set(shown.voidedFills.value.map(({ fill_id }) => fill_id))
  const added = fills
    .filter(({ fill_id }) => !known.has(fill_id))
    .map((fill) => ({ ...fill, status: 'FAILED' as const, failure: null }))
  if (added.length === 0) return
  shown.voidedFills.value = [...added, ...shown.voidedFills.value].slice(0, MOST_VOIDED)
  for (const id of new Set(added.map(({ order_id }) => order_id))) void explainVoids(orders, id)
}

/** Without an answer, the fills stay struck through without a reason. */
async function explainVoids(orders: OrderRequests, orderId: string): Promise<void> {
  const processing = await orders.fillProcessing(orderId).catch(() => null)
  const reasons = new Map(processing?.fills.map(({ fill_id, failure }) => [fill_id, failure]))
  shown.voidedFills.value = shown.voidedFills.value.map((fill) => ({
    ...fill,
    failure: reasons.get(fill.fill_id) ?? fill.failure,
  }))
}

let leave: (() => void) | null = null

effect(() => {
  const opened = session.value
  leave?.()
  leave = null
  shown.clearAccount()
  if (opened === null) {
    trader.value = null
    keyState.value = { name: 'none' }
    return
  }
  const current = open(opened)
  trader.value = current
  leave = follow(current)
  void loadKey(opened.address)
})

/** Throws for a visitor. */
export function requireTrader(): Trader {
  if (trader.value === null) throw new Error('sign in first')
  return trader.value
}

/** Removes the session key from this browser. */
export const forgetSessionKey = (): Promise<void> => forgetKey(requireTrader().session.address)

/** After an own write whose effect on positions REST shows at once. */
export const refreshAccount = (): void => {
  if (trader.value !== null) void readPositions(trader.value)
}
