/** Faucet, deposit and withdrawal. */
import { useState } from 'preact/hooks'
import type { WithdrawalPage } from '../../client/responses.ts'
import { parsed, usd } from '../base/numbers.ts'
import { countdown, dateTime } from '../base/times.ts'
import { toast } from '../base/toasts.ts'
import { useRead } from '../screens/use-read.ts'
import { Field } from '../trade/ticket-fields.tsx'
import { ownBank } from './bank.ts'
import { balance, freeBalance } from './live-account.ts'
import { refreshAccount, requireTrader, trader } from './trader.ts'
import { wallet } from './wallet.ts'

/** Runs one action of funds with one toast. Returns whether it is done. */
async function run(id: string, doing: string, done: string, work: () => Promise<unknown>): Promise<boolean> {
  toast({ id, kind: 'pending', title: doing })
  try {
    await work()
    toast({ id, kind: 'good', title: done })
    refreshAccount()
    return true
  } catch (error) {
    toast({ id, kind: 'bad', title: `${doing.replace(/ …$/, '')}: not done`, text: (error as Error).message })
    return false
  }
}

function PendingWithdrawal({ page, onPaid }: { page: WithdrawalPage | null; onPaid: () => void }) {
  if (page === null || BigInt(page.pending_e18_raw) === 0n) return null
  const isPayable = page.payable_at !== null && Date.parse(page.payable_at) <= Date.now()
  return (
    <div class="note">
      <p>
        {usd(page.pending_e18_raw)} USDM requested.{' '}
        {isPayable ? 'The bank pays it now.' : `The bank pays it in ${countdown(page.payable_at)}.`}
      </p>
      <button
        type="button"
        class="button small primary"
        data-testid="withdraw"
        disabled={!isPayable}
        onClick={async () => {
          await run('withdraw', 'Withdrawing …', 'The withdrawal is paid to your wallet', async () =>
            (await ownBank()).withdraw(),
          )
          onPaid()
        }}
      >
        Withdraw to the wallet
      </button>
    </div>
  )
}

function History({ page }: { page: WithdrawalPage | null }) {
  if (page === null || page.withdrawals.length === 0) return null
  return (
    <table class="table">
      <thead>
        <tr>
          <th scope="col">Withdrawal</th>
          <th scope="col" class="num">
            Amount
          </th>
          <th scope="col">Status</th>
        </tr>
      </thead>
      <tbody>
        {page.withdrawals.slice(0, 5).map((each) => (
          <tr key={each.withdrawal_id}>
            <th scope="row">{dateTime(each.requested_at)}</th>
            <td class="num">{usd(each.amount_e18_raw)}</td>
            <td>{each.status.toLowerCase()}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export function FundsPanel() {
  const [amount, setAmount] = useState('')
  const isReady = trader.value !== null
  const key = `${isReady}-${wallet.value?.address}`
  const held = useRead(
    `wallet-${key}`,
    () => (wallet.value === null ? Promise.resolve(null) : ownBank().then((bank) => bank.walletBalance())),
    5_000,
  )
  const withdrawals = useRead(
    `withdrawals-${key}`,
    () => (isReady ? requireTrader().account.withdrawalPage({ limit: 5 }) : Promise.resolve(null)),
    2_000,
  )
  const value = parsed(amount) ?? 0n
  const refresh = (): void => {
    held.again()
    withdrawals.again()
  }
  const faucet = async (): Promise<void> => {
    const work = async () => (await ownBank()).faucet()
    await run('faucet', 'Asking the faucet …', 'The faucet has paid USDM and gas to your wallet', work)
    refresh()
  }
  const put = async (): Promise<void> => {
    const work = async () => (await ownBank()).deposit(value)
    const doing = 'Depositing: sign the permit, then the transaction …'
    await run('deposit', doing, `Deposited ${usd(value)} USDM`, work)
    refresh()
  }
  const take = async (): Promise<void> => {
    const work = async () => (await ownBank()).requestWithdrawal(value)
    await run('withdraw', 'Requesting the withdrawal …', 'Requested: the bank pays it after its delay', work)
    refresh()
  }
  return (
    <section class="panel" aria-label="Funds" data-testid="funds">
      <header class="panel-head">
        <h2>Funds</h2>
      </header>
      <div class="form">
        <p class="available">
          <span>In the wallet</span>
          <span data-testid="wallet-balance">{usd(held.value)} USDM</span>
        </p>
        <p class="available">
          <span>Free at the exchange</span>
          <span data-testid="free-balance">
            {usd(freeBalance.value?.free_e18_raw ?? balance.value?.free_e18_raw)} USDM
          </span>
        </p>
        <Field label="Amount" value={amount} unit="USDM" testId="amount" onInput={setAmount} />
        <div class="form-line">
          <button
            type="button"
            class="button primary"
            data-testid="deposit"
            disabled={value <= 0n}
            onClick={() => void put()}
          >
            Deposit
          </button>
          <button
            type="button"
            class="button"
            data-testid="request-withdrawal"
            disabled={value <= 0n}
            onClick={() => void take()}
          >
            Request withdrawal
          </button>
          <button type="button" class="button" data-testid="faucet" onClick={() => void faucet()}>
            Test funds
          </button>
        </div>
        <PendingWithdrawal page={withdrawals.value} onPaid={refresh} />
      </div>
      <History page={withdrawals.value} />
    </section>
  )
}
