/** Collateral: the faucet, and deposits and withdrawals by transactions that the trader's own key signs. */
import { Contract, type ContractTransactionReceipt, type Signer } from 'ethers'
import { type Account, missingOption } from './account.ts'
import { type Decimal, toE18 } from './decimals.ts'
import { ClearbatchError } from './errors.ts'
import type { HttpSession } from './http-session.ts'
import type { MarketData } from './market-data.ts'
import type { Balance, FaucetPayout } from './responses.ts'
import { waitFor } from './wait-for.ts'

const TOKEN_ABI = [
  'function approve(address spender, uint256 amount) returns (bool)',
  'function allowance(address owner, address spender) view returns (uint256)',
] as const
const BANK_ABI = [
  'function deposit(uint256 amount)',
  'function requestWithdrawal(uint256 amount)',
  'function withdraw()',
] as const

export interface BankOptions {
  readonly http: HttpSession
  readonly account: Account
  readonly marketData: MarketData
  /** The account's own key, connected to the chain if the client has an RPC URL; null without the key. */
  readonly wallet: Signer | null
}

export class Bank {
  readonly #options: BankOptions

  constructor(options: BankOptions) {
    this.#options = options
  }

  /** Sends test collateral and gas to the wallet, on chains that have a faucet. Deposits nothing. Never retried. */
  async faucet(): Promise<FaucetPayout> {
    return this.#options.http.send({ method: 'POST', path: '/v0/faucet', body: {}, idempotent: false })
  }

  /** Approves if the allowance is too low, deposits, and returns once the exchange shows the deposit. */
  async deposit(amount: Decimal): Promise<{ readonly tx_hash: string; readonly balance: Balance }> {
    const value = toE18(amount)
    const before = BigInt((await this.#balanceOrNull())?.free_e18_raw ?? 0)
    const signer = this.#connectedWallet()
    const { addressCollateralToken, addressMarginBank: bank } = await this.#options.marketData.contracts()
    const token = new Contract(addressCollateralToken, TOKEN_ABI, signer)
    const allowance = (await token.getFunction('allowance')(await signer.getAddress(), bank)) as bigint
    if (allowance < value) await sendTransaction(token, 'approve', bank, value)
    const tx_hash = await sendTransaction(new Contract(bank, BANK_ABI, signer), 'deposit', value)
    const balance = await waitFor(
      () => this.#balanceOrNull(),
      (now) => now !== null && BigInt(now.free_e18_raw) >= before + value,
    )
    return { tx_hash, balance: balance as Balance }
  }

  /** First step of a withdrawal: moves the amount from the free balance to pending. Returns the transaction hash. */
  async requestWithdrawal(amount: Decimal): Promise<string> {
    return sendTransaction(await this.#contract(), 'requestWithdrawal', toE18(amount))
  }

  /** Second step: pays the pending amount after the bank's delay. Returns the transaction hash. */
  async withdraw(): Promise<string> {
    return sendTransaction(await this.#contract(), 'withdraw')
  }

  async #contract(): Promise<Contract> {
    const signer = this.#connectedWallet()
    const { addressMarginBank } = await this.#options.marketData.contracts()
    return new Contract(addressMarginBank, BANK_ABI, signer)
  }

  #connectedWallet(): Signer {
    const { wallet } = this.#options
    return wallet?.provider ? wallet : missingOption('privateKey and rpcUrl')
  }

  /** Null before the first deposit: the exchange has no user for the account. */
  async #balanceOrNull(): Promise<Balance | null> {
    try {
      return await this.#options.account.balance()
    } catch (error) {
      if (error instanceof ClearbatchError && error.status === 404) return null
      throw error
    }
  }
}

/** Waits for the receipt and returns the transaction's hash. */
async function sendTransaction(
  contract: Contract,
  method: string,
  ...args: readonly unknown[]
): Promise<string> {
  const sent = await contract.getFunction(method)(...args)
  const receipt = (await sent.wait()) as ContractTransactionReceipt
  return receipt.hash
}
