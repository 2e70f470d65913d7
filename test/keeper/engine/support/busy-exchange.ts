/** An exchange in this process on which everything happens at once: traders, operators, workers, the chain, and owners of accounts. */
import type { ChainFact } from '../../../../domain/chain/facts.ts'
import type { Entry } from '../../../../domain/exchange/apply.ts'
import type { MarketSpec } from '../../../../domain/market/market.ts'
import type { SignedAdjustment } from '../../../../domain/positions/stored-adjustment.ts'
import type { Address, MarketId, Millis, Quote, Rate, Seconds, UserId } from '../../../../domain/units.ts'
import type { ExchangeAnswer, ExchangeCommand } from '../../../../keeper/engine/commands.ts'
import type { Exchange } from '../../../../keeper/engine/exchange.ts'
import { Scheduler } from '../../../../simulate/exchange/scheduler.ts'
import { Crowd } from '../../../../simulate/exchange/trading/crowd.ts'
import { ACCOUNT_IDS, addressOf, MARKETS } from '../../../../simulate/exchange/trading/genesis.ts'
import type { Random } from '../../../../simulate/random.ts'
import { perpetual } from '../../../../simulate/scenarios.ts'

const START = 1_800_000_000_000
const TICK_MS = 100
const LANES = ['m1', 'm2', 'relay', 'adjust']
const relayerOf = (lane: string): string => addressOf(0xf0 + LANES.indexOf(lane))
const hexOf = (number: number): `0x${string}` => `0x${number.toString(16).padStart(64, '0')}`

export class BusyExchange {
  exchange: Exchange
  /** Rows that are applied and not stored yet. */
  rows: Entry[] = []
  /** Kinds of rows that were written. */
  readonly kinds = new Set<string>()
  readonly #random: Random
  readonly #scheduler = new Scheduler()
  readonly #crowd: Crowd
  #numbers = 0

  constructor(exchange: Exchange, random: Random) {
    this.exchange = exchange
    this.#random = random
    this.#crowd = new Crowd(this.#scheduler, random, (command) =>
      Promise.resolve({ answer: this.decide(withDigest(command)) }),
    )
    this.#crowd.start(60)
    for (const lane of LANES)
      this.decide({ kind: 'register_lane', relayer: relayerOf(lane), chainId: 1, lane, firstNonce: 3 })
  }

  get #now(): Millis {
    return (START + Math.floor(this.#scheduler.now)) as Millis
  }

  get #state() {
    return this.exchange.applied.state
  }

  /** A tenth of a second of everything. */
  async tick(): Promise<void> {
    await this.#scheduler.runUntil(this.#scheduler.now + TICK_MS)
    for (const act of [this.#settle, this.#mine, this.#operate, this.#watch, this.#own])
      if (this.#random.chance(0.5)) act.call(this)
  }

  /** Decides the command to its end, as an owner does. */
  decide(command: ExchangeCommand): ExchangeAnswer {
    for (let next = command; ; ) {
      const decision = this.exchange.execute(next, { now: this.#now })
      for (const entry of decision.rows) {
        this.rows.push(JSON.parse(JSON.stringify(entry)) as Entry)
        this.kinds.add(entry.row.kind)
      }
      if (decision.next === null) return decision.answer
      next = decision.next
    }
  }

  #settle(): void {
    const random = this.#random
    const spec = random.pick(MARKETS)
    const { marketId } = spec
    const relayer = relayerOf(`m${marketId}`)
    const answer = this.decide({
      kind: 'next_action',
      marketId,
      relayer,
      latestAsOf: (this.#now + 1_000) as Millis,
    })
    if (answer !== null && 'queueNo' in answer && answer.kind === 'action' && random.chance(0.8)) {
      const { queueNo, nonce } = answer
      const hash = hexOf(++this.#numbers)
      this.decide({
        kind: 'signed',
        marketId,
        queueNo,
        relayer,
        nonce,
        attempt: 1,
        hash,
        purpose: 'settle_part',
      })
      if (random.chance(0.7)) this.decide({ kind: 'submitted', marketId, relayer, nonce })
    }
    const [first] = this.#state.queues.pending(marketId)
    if (first !== undefined && random.chance(0.1)) this.#end(spec, first)
    if (random.chance(0.2)) this.decide({ kind: 'reserve_nonces', relayer: relayerOf('relay'), count: 2 })
    if (random.chance(0.2))
      this.decide({ kind: 'update_funding', marketId, interval: 500 as Millis, isBankPaused: false })
  }

  #end(spec: MarketSpec, queueNo: number): void {
    const error = 'refused by the chain'
    const { kind, batch_id } = this.#state.actions.need(`${spec.marketId}-${queueNo}`)
    if (kind !== 'settle_part' && this.#random.chance(0.7))
      this.decide({ kind: 'restart_queue', spec, queueNo, isDropped: true, error })
    else if (batch_id !== null)
      this.decide({ kind: 'void', spec, queueNo, culprit: { kind: 'unnamed', error } })
  }

  // -------------------------------------------------------------------- chain

  #mine(): void {
    const random = this.#random
    const tip = Math.max(0, ...[...this.#state.blocks.rows()].map(({ number }) => number))
    const from = this.#state.chain.get('chain')?.next_block ?? 1
    if (random.chance(0.2)) {
      this.decide({ kind: 'roll_back', above: Math.max(0, tip - random.between(0, 3)) })
      return
    }
    const facts = Array.from({ length: random.between(0, 4) }, () => this.#fact())
    const parent = this.#state.blocks.get(String(from - 1))
    this.decide({
      kind: 'apply_block',
      block: {
        number: from,
        hash: `b${++this.#numbers}`,
        parentHash: parent?.hash ?? `b${this.#numbers - 1}`,
        timestamp: Math.floor(this.#now / 1_000),
      },
      from,
      facts: facts.map((fact, logIndex) => ({
        log: { logIndex, txHash: hexOf(++this.#numbers), address: addressOf(9) },
        fact,
      })),
      silent: [],
      positions: [],
      gasUsed: new Map(),
    })
    if (random.chance(0.5))
      this.decide({ kind: 'confirm_blocks', number: from, timestamp: Math.floor(this.#now / 1_000) })
  }

  #fact(): ChainFact {
    const random = this.#random
    const account = addressOf(random.between(1, 8))
    const spec = random.pick(MARKETS)
    const at = Math.floor(this.#now / 1_000)
    return random.pick<() => ChainFact>([
      () => ({ kind: 'ledger_moved', cause: 'deposit', account, freeDelta: 10n ** 18n, pendingDelta: 0n }),
      () => ({
        kind: 'ledger_moved',
        cause: 'withdrawal_request',
        account,
        freeDelta: -1_000n,
        pendingDelta: 1_000n,
      }),
      () => ({
        kind: 'session_key_updated',
        owner: account,
        key: addressOf(random.between(100, 102)),
        change: random.chance(0.3)
          ? { revoked_at: at }
          : { permissions: 3, registered_at: at, expires_at: at + 100 },
      }),
      () => ({
        kind: 'forward_request_executed',
        signer: account,
        nonce: this.#state.forwarderNonces.get(account)?.next_nonce ?? 0,
        success: random.chance(0.8),
      }),
      () => ({ kind: 'margin_nonces_invalidated', spec, account, minimum: BigInt(random.between(1, 9)) }),
      () => ({ kind: 'bank_pause_changed', endsAt: random.chance(0.3) ? at + 1 : null }),
      () => ({ kind: 'ending_changed', spec, times: { dispute_window: random.between(1, 9) } }),
      () => ({ kind: 'undecodable', spec: MARKETS[1] as MarketSpec, problem: 'no event' }),
    ])()
  }

  // -------------------------------------------------------------------- operators, connections, owners

  #operate(): void {
    const random = this.#random
    const { marketId, takerFee } = random.pick(MARKETS)
    const from = (this.#now + 50) as Millis
    this.decide({
      kind: 'operator',
      marketId,
      setting: random.pick([
        { kind: 'reopen' },
        { kind: 'calendar', calendar: random.pick([null, 'ALWAYS_OPEN' as const]) },
        { kind: 'impact_notional', notional: random.pick([null, (10n ** 18n) as Quote]) },
        { kind: 'protection', width: (10n ** 16n) as Rate },
        {
          kind: 'fees',
          change: {
            rates: { makerFee: 0n as Rate, takerFee: (takerFee / 5n) as Rate },
            from,
            until: (from + 700) as Millis,
          },
          isDryRun: false,
        },
      ]),
    })
    if (random.chance(0.05)) this.decide({ kind: 'list_market', spec: { ...perpetual(3, 5) } })
  }

  #watch(): void {
    const random = this.#random
    const userId = random.pick(ACCOUNT_IDS)
    const connectionId = `c${random.between(1, 4)}`
    this.decide({ kind: 'set_switch', userId, timeoutSeconds: random.pick([0, 1, 1]) })
    this.decide({
      kind: 'hold_connections',
      connections: [
        {
          connectionId,
          userId,
          timeoutSeconds: random.between(1, 3),
          keyName: random.pick([null, 'default', 'bot']),
          fireInMs: 1_000,
        },
      ],
    })
    if (random.chance(0.3)) this.decide({ kind: 'end_connections', connections: [connectionId] })
    this.decide({
      kind: 'fire_switches',
      due: random.chance(0.3) ? [{ connectionId: `c${random.between(1, 4)}`, fireAt: this.#now }] : [],
    })
  }

  #own(): void {
    const random = this.#random
    const userId = random.pick(ACCOUNT_IDS)
    this.decide({ kind: 'log_in', address: addressOf(random.between(1, 12)) })
    this.#relay(userId)
    // An account with an attempt in flight takes part in no batch.
    if (random.chance(0.04)) this.#adjust(userId, random.pick(MARKETS).marketId)
  }

  #relay(userId: UserId): void {
    const random = this.#random
    const from = addressOf(userId)
    const open = this.#state.relayIndex.open(from).map(({ nonce }) => nonce)
    const next = this.#state.forwarderNonces.get(from)?.next_nonce ?? 0
    const nonce = Math.max(next, ...open.map((used) => used + 1))
    this.decide({
      kind: 'accept_relay',
      userId,
      operationId: hexOf(++this.#numbers),
      effect: random.chance(0.5)
        ? { kind: 'register_session_key', sessionKey: addressOf(random.between(100, 104)) }
        : { kind: 'invalidate_margin_nonces', marketId: 1, minimum: BigInt(random.between(1, 30)) },
      request: {
        from,
        to: addressOf(77),
        gas: 100_000,
        nonce,
        deadline: Math.floor(this.#now / 1_000 + 600) as Seconds,
        data: '0x12',
      },
      signature: '0xAB',
      hasLane: true,
    })
  }

  #adjust(userId: UserId, marketId: MarketId): void {
    const signed: SignedAdjustment = {
      adjustment: this.#random.chance(0.5)
        ? { amount: (10n ** 15n) as Quote, removeMode: 'exact', minAmount: 0n as Quote }
        : {
            leverage: this.#random.between(1, 3),
            maxMarginIn: (10n ** 18n) as Quote,
            minMarginOut: 0n as Quote,
          },
      signer: addressOf(userId) as Address,
      signature: '0x12',
      deadline: Math.floor(this.#now / 1_000 + 60) as Seconds,
    }
    const number = ++this.#numbers
    this.decide({
      kind: 'adjust',
      userId,
      marketId,
      digest: hexOf(number),
      nonce: number,
      signed,
      hasLane: true,
    })
  }
}

/** The crowd names requests by short texts; digests are hexadecimal digits. */
function withDigest(command: ExchangeCommand): ExchangeCommand {
  if (command.kind !== 'orders' || command.request === null) return command
  const digest = Buffer.from(command.request.digest).toString('hex')
  return { ...command, request: { ...command.request, digest } }
}
