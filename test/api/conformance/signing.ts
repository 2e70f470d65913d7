/** Signs orders with ethers by the struct, domain and flags of the contract with traders, independently of the domain code. */
import { TypedDataEncoder, type Wallet } from 'ethers'
import { e18 } from '../../support/markets.ts'

export interface Account {
  readonly wallet: Wallet
  readonly address: string
  readonly userId: number
  readonly apiKey: string
}

/** A market as returned by `GET /v0/markets`. */
export interface MarketFacts {
  readonly market_id: number
  readonly chain_id: number
  readonly trader_address: string
  readonly tick_size_e18_raw: string
  readonly step_size_e18_raw: string
  readonly oracle_price_e18_raw: string
  readonly max_leverage: number
}

/** Terms of an order in human units. */
export interface OrderDraft {
  readonly side?: string
  readonly order_type?: string
  readonly price?: string
  readonly quantity?: string
  readonly leverage?: number
  readonly expiration_seconds?: number
  readonly trigger_price?: string
  readonly reduce_only?: boolean
  readonly salt?: bigint
}

/** Differences between the signed and the sent order. */
export interface Forgery {
  readonly message?: Readonly<Record<string, unknown>>
  readonly domain?: Readonly<Record<string, unknown>>
  readonly struct?: readonly string[]
  readonly sign?: (digest: string, wallet: Wallet) => string
  readonly signer?: Wallet
}

const TYPES: Readonly<Record<string, string>> = {
  flags: 'bytes8',
  quantity: 'uint128',
  price: 'uint128',
  triggerPrice: 'uint128',
  triggerCondition: 'uint8',
  leverage: 'uint128',
  maker: 'address',
  expiration: 'uint128',
}
export const STRUCT = Object.keys(TYPES)

/** Signing rule 5: the 32 bytes as a personal message, with the suffix 01. */
export const personally = (digest: string, wallet: Wallet): string =>
  `${wallet.signMessageSync(Buffer.from(digest.slice(2), 'hex'))}01`

export const typeOf = ({ order_type, price }: OrderDraft): string =>
  order_type ?? (price === undefined ? 'MARKET' : 'LIMIT')

/** Signing rule 3; a stop-loss has the condition of a stop. */
export function conditionOf(type: string, side: string): number {
  if (type === 'MARKET' || type === 'LIMIT') return 0
  const rises = type.startsWith('TAKE_PROFIT') ? side === 'SHORT' : side === 'LONG'
  return rises ? 1 : 2
}

let salts = 1_000n
export const nextSalt = (): bigint => salts++

/** Signing rule 1. */
export const flagsOf = (salt: bigint, side: string, reduceOnly: boolean): string =>
  `0x${((salt << 4n) | (side === 'LONG' ? 1n : 0n) | (reduceOnly ? 2n : 0n)).toString(16).padStart(16, '0')}`

/** The request body of a placement, and the hash of what was signed. */
export function signed(account: Account, market: MarketFacts, draft: OrderDraft, forgery: Forgery = {}) {
  const { side = 'LONG', quantity = '0.01', leverage = 1, expiration_seconds = 0, salt = nextSalt() } = draft
  const { price = '0', trigger_price = '0', reduce_only = false } = draft
  const type = typeOf(draft)
  const message = {
    flags: flagsOf(salt, side, reduce_only),
    quantity: e18(quantity),
    price: e18(price),
    triggerPrice: e18(trigger_price),
    triggerCondition: conditionOf(type, side),
    leverage: e18(String(leverage)),
    maker: account.address,
    expiration: expiration_seconds,
    ...forgery.message,
  }
  const domain = {
    ...{ name: 'IsolatedTrader', version: '2.0' },
    ...{ chainId: market.chain_id, verifyingContract: market.trader_address },
    ...forgery.domain,
  }
  const fields = (forgery.struct ?? STRUCT).map((name) => ({ name, type: TYPES[name] as string }))
  const digest = TypedDataEncoder.hash(domain, { Order: fields }, message)
  const body: Record<string, unknown> = {
    ...{
      market_id: market.market_id,
      side,
      order_type: type,
      quantity,
      leverage,
      expiration_seconds,
      reduce_only,
    },
    ...(draft.price !== undefined && { price }),
    ...(draft.trigger_price !== undefined && { trigger_price }),
    salt: salt.toString(),
    signature: (forgery.sign ?? personally)(digest, forgery.signer ?? account.wallet),
    signature_type: 1,
  }
  return { hash: digest, body }
}
