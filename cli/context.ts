/** Context of a command: the account's client, and the terminal. Secrets are read when a command first needs them. */
import { Client } from '../client/client.ts'
import type { ClearbatchError } from '../client/errors.ts'
import type { Market, PlacedOrder } from '../client/responses.ts'
import { nativeSigner } from '../client/signers/native-signer.ts'
import type { AccountSigner } from '../client/signers/signer.ts'
import { isTestChain } from '../domain/test-chains.ts'
import type { Env } from './config.ts'
import { CommandError, EXIT } from './failure.ts'
import type { GlobalValues } from './global-flags.ts'
import { type Place, placeOf } from './place.ts'
import type { Format } from './print.ts'
import { readPrivateKey, readSecret } from './secrets.ts'
import type { Terminal } from './terminal.ts'

export class Context {
  readonly flags: GlobalValues
  readonly env: Env
  readonly terminal: Terminal
  readonly format: Format
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly stopping: AbortSignal
  /** Aborted, with the error as its reason, when the exchange refuses the credential or a topic of a live feed. */
  readonly feedRefusal: AbortSignal
  readonly #feed = new AbortController()
  #hasPosted = false
  readonly #clients: Client[] = []
  readonly #children: Context[] = []
  #place: Place | null = null
  #signer: Promise<AccountSigner> | null = null

  constructor(flags: GlobalValues, env: Env, terminal: Terminal, stopping: AbortSignal) {
    this.flags = flags
    this.env = env
    this.terminal = terminal
    this.stopping = stopping
    this.feedRefusal = this.#feed.signal
    this.format = flags.jsonl ? 'jsonl' : flags.json ? 'json' : 'text'
  }

  get place(): Place {
    this.#place ??= placeOf(this.flags, this.env)
    return this.#place
  }

  /** After a change of the profile or the flags. */
  forgetPlace(): void {
    this.#place = null
  }

  /** Without a credential: for public data. */
  anonymous(): Client {
    return this.#open({ baseUrl: this.place.url })
  }

  /** With the credential, for reads of the account. */
  reader(address?: string): Client {
    const account = address ?? this.place.stackAccount?.address
    return this.#open({
      baseUrl: this.place.url,
      authorization: this.authorization(),
      ...(account === undefined ? {} : { address: account }),
    })
  }

  /** With the credential and the account's key. The chain is checked before anything is signed. */
  async signing(): Promise<Client> {
    const { url, rpcUrl } = this.place
    const signer = await this.signer()
    const client = this.#open({
      baseUrl: url,
      authorization: this.authorization(),
      signer,
      ...(rpcUrl === undefined ? {} : { rpcUrl }),
    })
    await this.#checkChain(client)
    const owner = (await client.account.me()).address
    if (owner.toLowerCase() === signer.address.toLowerCase()) return client
    // The key file contains a session key of the account.
    return this.#open({
      baseUrl: url,
      authorization: this.authorization(),
      address: owner,
      orderSigner: signer,
    })
  }

  /** Signs without a credential: what is signed is sent elsewhere. */
  unauthenticated(signer: AccountSigner): Client {
    return this.#open({ baseUrl: this.place.url, signer })
  }

  async signer(): Promise<AccountSigner> {
    this.#signer ??= this.#readSigner()
    return this.#signer
  }

  /** Throws with the exit code for a missing credential. */
  authorization(): string {
    const { tokenFile, apiKeyFile, stackAccount } = this.place
    const warn = (text: string) => this.terminal.note(text)
    if (this.flags['token-file'] !== undefined && tokenFile !== undefined)
      return `Bearer ${readSecret(tokenFile, 'access token', warn)}`
    if (apiKeyFile !== undefined) return `Key ${readSecret(apiKeyFile, 'API key', warn)}`
    if (tokenFile !== undefined) return `Bearer ${readSecret(tokenFile, 'access token', warn)}`
    if (stackAccount !== undefined) return `Key ${stackAccount.api_key}`
    throw new CommandError(
      'this command needs an account: run `clearbatch auth login`, or pass --api-key-file or --token-file',
      EXIT.unauthorized,
    )
  }

  async market(client: Client, symbol: string): Promise<Market> {
    const markets = await client.marketData.markets()
    const found = markets.find((each) => each.symbol === symbol || String(each.market_id) === symbol)
    if (found !== undefined) return found
    const symbols = markets.map((each) => each.symbol).join(', ')
    throw new CommandError(`the market must be one of ${symbols}; received ${symbol}`, EXIT.usage)
  }

  /** The order with this hash, id or label. */
  async order(client: Client, name: string): Promise<PlacedOrder> {
    if (/^0x[0-9a-fA-F]{64}$/.test(name)) return client.orders.getByHash(name.toLowerCase())
    return /^\d+-\d+$/.test(name) ? client.orders.get(name) : client.orders.getByClientId(name)
  }

  /** For a caller that is a program: nothing is asked, and results are not formatted for a person. */
  asJson(): Context {
    const context = new Context({ ...this.flags, json: true }, this.env, this.terminal, this.stopping)
    this.#children.push(context)
    return context
  }

  /** Whether a request that may have an effect has been sent to the exchange. */
  get hasPosted(): boolean {
    return this.#hasPosted || this.#children.some(({ hasPosted }) => hasPosted)
  }

  close(): void {
    for (const child of this.#children) child.close()
    for (const client of this.#clients) client.close()
  }

  #open(options: ConstructorParameters<typeof Client>[0]): Client {
    const { timeout } = this.flags
    const limits = timeout === undefined ? {} : { budgetMs: timeout * 1000, timeoutMs: timeout * 1000 }
    const http = { ...limits, fetch: this.#fetch }
    const onLiveError = (error: ClearbatchError) => this.#feed.abort(error)
    const client = new Client({ ...options, http, onLiveError })
    this.#clients.push(client)
    return client
  }

  readonly #fetch: typeof fetch = (input, init) => {
    if (init?.method === 'POST') this.#hasPosted = true
    return fetch(input, init)
  }

  async #readSigner(): Promise<AccountSigner> {
    const { keyFile, stackAccount } = this.place
    if (keyFile === undefined && stackAccount !== undefined) return nativeSigner(stackAccount.private_key)
    if (keyFile === undefined)
      throw new CommandError(
        'this command signs: pass the key of the account by --key-file, or run `clearbatch auth login`',
        EXIT.unauthorized,
      )
    const password = async () => this.env.CLEARBATCH_PASSWORD ?? this.terminal.ask(`Password of ${keyFile}: `)
    return nativeSigner(await readPrivateKey(keyFile, password, (text) => this.terminal.note(text)))
  }

  async #checkChain(client: Client): Promise<void> {
    const { chainId, profile, url } = this.place
    const { chain_id: received } = await client.marketData.contracts()
    if (chainId !== undefined && received !== chainId)
      throw new CommandError(
        `${url} is on chain ${received}, and the profile ${profile} on chain ${chainId}: nothing was signed. If this is intended, run \`clearbatch auth login --profile ${profile}\` again`,
      )
    const isTest = isTestChain(received)
    if ((profile === 'mainnet' && isTest) || (profile === 'testnet' && !isTest))
      throw new CommandError(
        `the profile ${profile} does not match chain ${received} of ${url}: nothing was signed`,
      )
  }
}
