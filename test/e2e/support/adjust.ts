/** Signs and sends adjustments over REST, independent of the exchange's own hashing. */
import { getBytes, TypedDataEncoder, Wallet } from 'ethers'
import type { Stack } from '../../../stack/stack.ts'
import { e18 } from '../../support/markets.ts'

export interface RestAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  readonly body: any
}

const FIELDS = { uint256: ['minAmount', 'nonce', 'deadline', 'leverage', 'maxMarginIn', 'minMarginOut'] }
const typeOf = (name: string): string => {
  if (name === 'account') return 'address'
  if (name === 'amount') return 'int256'
  return FIELDS.uint256.includes(name) ? 'uint256' : 'uint8'
}
const typesOf = (names: readonly string[]) => names.map((name) => ({ name, type: typeOf(name) }))
const MARGIN = typesOf(['account', 'amount', 'removeMode', 'minAmount', 'nonce', 'deadline'])
const LEVERAGE = typesOf(['account', 'leverage', 'maxMarginIn', 'minMarginOut', 'nonce', 'deadline'])

export interface AdjustOptions {
  readonly signer?: Wallet
  readonly form?: 'typed' | 'personal'
  readonly nonce?: number
  readonly deadline?: number
  readonly market?: number
}

let nextNonce = 1

export interface SignedRequest {
  readonly path: string
  readonly body: Record<string, unknown>
}

/** Requests of the seeded account with this index. */
export class Adjuster {
  readonly #stack: Stack
  readonly #index: number

  constructor(stack: Stack, index: number) {
    this.#stack = stack
    this.#index = index
  }

  get account() {
    const account = this.#stack.file.accounts[this.#index]
    if (account === undefined) throw new Error(`the stack has no account ${this.#index}`)
    return account
  }

  #sign(
    name: string,
    fields: typeof MARGIN,
    message: Record<string, unknown>,
    options: AdjustOptions,
  ): string {
    const spec = this.#stack.specs.find(({ marketId }) => marketId === (options.market ?? 1))
    const domain = { name: 'IsolatedTrader', version: '2.0', chainId: spec?.chainId ?? 0n }
    const digest = TypedDataEncoder.hash(
      { ...domain, verifyingContract: spec?.trader as string },
      { [name]: fields },
      message,
    )
    const signer = options.signer ?? new Wallet(this.account.private_key)
    if (options.form === 'personal') return `${signer.signMessageSync(getBytes(digest))}01`
    return signer.signingKey.sign(digest).serialized
  }

  #common(options: AdjustOptions) {
    const spec = this.#stack.specs.find(({ marketId }) => marketId === (options.market ?? 1))
    return {
      symbol: spec?.symbol,
      address: this.account.address,
      nonce: options.nonce ?? nextNonce++,
      deadline: options.deadline ?? Math.floor(Date.now() / 1000) + 120,
    }
  }

  margin(
    amount: string,
    more: AdjustOptions & { readonly mode?: 'exact' | 'up_to'; readonly minAmount?: string } = {},
  ): SignedRequest {
    const common = this.#common(more)
    const { mode = 'exact', minAmount = '0' } = more
    const message = {
      ...{ account: this.account.address, amount: e18(amount), removeMode: mode === 'exact' ? 0 : 1 },
      ...{ minAmount: e18(minAmount), nonce: common.nonce, deadline: common.deadline },
    }
    const signature = this.#sign('AdjustMargin', MARGIN, message, more)
    const body = { ...common, amount, remove_mode: mode, min_amount: minAmount, signature }
    return { path: '/v0/account/adjust-margin', body }
  }

  leverage(
    leverage: number,
    {
      maxIn = '0',
      minOut = '0',
      ...more
    }: AdjustOptions & { readonly maxIn?: string; readonly minOut?: string } = {},
  ): SignedRequest {
    const common = this.#common(more)
    const message = {
      ...{ account: this.account.address, leverage: e18(String(leverage)) },
      ...{
        maxMarginIn: e18(maxIn),
        minMarginOut: e18(minOut),
        nonce: common.nonce,
        deadline: common.deadline,
      },
    }
    const signature = this.#sign('AdjustLeverage', LEVERAGE, message, more)
    const bounds = { max_margin_in_e18_raw: `${e18(maxIn)}`, min_margin_out_e18_raw: `${e18(minOut)}` }
    return { path: '/v0/account/adjust-leverage', body: { ...common, leverage, ...bounds, signature } }
  }

  async send({ path, body }: SignedRequest): Promise<RestAnswer> {
    return this.#request('POST', path, JSON.stringify(body))
  }

  async attempts(query = ''): Promise<RestAnswer> {
    return this.#request('GET', `/v0/account/adjustment-attempts${query}`)
  }

  async #request(method: string, path: string, body?: string): Promise<RestAnswer> {
    const headers = {
      authorization: `Key ${this.account.api_key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const response = await fetch(`${this.#stack.file.base_url}${path}`, {
      ...{ method, headers },
      ...(body !== undefined && { body }),
    })
    return { status: response.status, body: await response.json() }
  }
}
