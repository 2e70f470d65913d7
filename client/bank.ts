/** Collateral: the faucet, and deposits and withdrawals by transactions of the trader's own account. */
import { type Account, missingOption } from './account.ts'
import { encodeCall } from './chain/calls.ts'
import { isContract, signPermit } from './chain/permit.ts'
import { Rpc } from './chain/rpc.ts'
import { TransactionSender } from './chain/sender.ts'
import { type Decimal, fromE18, toE18 } from './decimals.ts'
import type { HttpSession } from './http-session.ts'
import type { MarketData } from './market-data.ts'
import type { FaucetPayout, MarginBalance } from './responses.ts'
import type { Signer } from './signers/signer.ts'
import { waitFor } from './wait-for.ts'

export interface BankOptions {
  readonly http: HttpSession
  readonly account: Account
  readonly marketData: MarketData
  /** Signer of the account itself; null for a client with only a session key. */
  readonly signer: Signer | null
  readonly rpcUrl: string | undefined
  readonly fetch?: typeof fetch | undefined
}

export interface Deposit {
  readonly tx_hash: string
  /** How the bank got the right to move the tokens. */
  readonly paid_by: 'permit' | 'allowance' | 'approval'
  readonly balance: MarginBalance
}

interface Connection {
  readonly rpc: Rpc
  readonly signer: Signer
  readonly sender: TransactionSender
  readonly token: string
  readonly bank: string
  readonly chainId: number
}

export class Bank {
  readonly #options: BankOptions

  constructor(options: BankOptions) {
    this.#options = options
  }

  /**
   * Sends test collateral and gas to the wallet, on chains with a faucet. It makes no deposit and is never retried.
   */
  async faucet(): Promise<FaucetPayout> {
    return this.#options.http.send({ method: 'POST', path: '/v0/faucet', body: {}, idempotent: false })
  }

  /** Wallet balance of the token in wei: the maximum deposit. */
  async walletBalance(): Promise<bigint> {
    const { rpc, token, signer } = await this.#connect()
    return balanceOf(rpc, token, signer.address)
  }

  /**
   * Deposits with a permit in one transaction; returns once the exchange shows the deposit. Without permits, or for a
   * contract account, it approves first if the allowance is too low.
   */
  async deposit(amount: Decimal): Promise<Deposit> {
    const value = toE18(amount)
    if (value <= 0n) throw new RangeError(`amount must be above 0; received ${fromE18(value)}`)
    const connection = await this.#connect()
    const { rpc, token, signer } = connection
    const held = await balanceOf(rpc, token, signer.address)
    if (held < value)
      throw new RangeError(
        `amount must be at most ${fromE18(held)}, the wallet's tokens; received ${fromE18(value)}`,
      )
    const { tx_hash, paid_by } = await this.#pay(connection, value)
    return { tx_hash, paid_by, balance: await this.#balanceAfter(tx_hash) }
  }

  /** First step of a withdrawal: moves the amount from the free balance to pending. Returns the transaction hash. */
  async requestWithdrawal(amount: Decimal): Promise<string> {
    const { sender, bank } = await this.#connect()
    const data = encodeCall('requestWithdrawal(uint256)', toE18(amount))
    return sender.send({ to: bank, data, name: 'requestWithdrawal' })
  }

  /** Second step: pays the pending amount after the bank's delay. Returns the transaction hash. */
  async withdraw(): Promise<string> {
    const { sender, bank } = await this.#connect()
    return sender.send({ to: bank, data: encodeCall('withdraw()'), name: 'withdraw' })
  }

  async #pay(connection: Connection, value: bigint): Promise<Pick<Deposit, 'tx_hash' | 'paid_by'>> {
    const { rpc, signer, sender, token, bank, chainId } = connection
    const deposit = { to: bank, data: encodeCall('deposit(uint256)', value), name: 'deposit' }
    const allowance = BigInt(
      await rpc.read(token, encodeCall('allowance(address,address)', signer.address, bank)),
    )
    if (allowance >= value) return { tx_hash: await sender.send(deposit), paid_by: 'allowance' }
    const permit = (await isContract(rpc, signer.address))
      ? null
      : await signPermit(rpc, signer, { token, spender: bank, value, chainId })
    if (permit !== null) {
      const { deadline, v, r, s } = permit
      const data = encodeCall(
        'depositWithPermit(uint256,uint256,uint8,bytes32,bytes32)',
        value,
        deadline,
        v,
        r,
        s,
      )
      return { tx_hash: await sender.send({ to: bank, data, name: 'depositWithPermit' }), paid_by: 'permit' }
    }
    await sender.send({
      to: token,
      data: encodeCall('approve(address,uint256)', bank, value),
      name: 'approve',
    })
    return { tx_hash: await sender.send(deposit), paid_by: 'approval' }
  }

  /** The exchange shows a deposit some confirmations after its transaction. */
  async #balanceAfter(tx_hash: string): Promise<MarginBalance> {
    const { account } = this.#options
    const hashes = async () => (await account.transactions({ type: 'deposit' })).map((each) => each.tx_hash)
    await waitFor(hashes, (shown) => shown.includes(tx_hash), { budgetMs: 30_000 })
    return account.balance()
  }

  async #connect(): Promise<Connection> {
    const { signer, rpcUrl, marketData, fetch } = this.#options
    if (signer === null || rpcUrl === undefined) return missingOption('privateKey (or signer) and rpcUrl')
    const { addressCollateralToken, addressMarginBank, chain_id } = await marketData.contracts()
    const rpc = new Rpc(rpcUrl, fetch)
    const sender = new TransactionSender(rpc, signer, chain_id)
    await sender.checkChain()
    return { rpc, signer, sender, token: addressCollateralToken, bank: addressMarginBank, chainId: chain_id }
  }
}

const balanceOf = async (rpc: Rpc, token: string, account: string): Promise<bigint> =>
  BigInt(await rpc.read(token, encodeCall('balanceOf(address)', account)))
