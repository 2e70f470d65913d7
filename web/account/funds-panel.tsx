/** Faucet, deposit and withdrawal. */

import { useState } from 'preact/hooks'
import type { WithdrawalPage } from '../../client/responses.ts'
import { parsed, usd } from '../base/numbers.ts'
import { countdown, dateTime } from '../base/times.ts'
import { attempt } from '../base/toasts.ts'
import { Field } from '../trade/ticket-fields.tsx'
import { Button, Head } from '../ui/controls.tsx'
import { useRead } from '../ui/use-read.ts'
import { ownBank } from './bank.ts'
import { balance, freeBalance } from './live-account.ts'
import { refreshAccount, requireTrader, trader } from './trader.ts'
import { wallet } from './wallet.ts'

/** Runs one action of funds. */
async function run(id: string, doing: string, done: string, work: () => Promise<unknown>): Promise<void> {
  await attempt({ id, doing, done, failed: `${doing.replace(/ …$/, '')}: not done` }, work)
  refreshAccount()
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
      <Button
        class="small primary"
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
      </Button>
    </div>
  )
}

function History({ page }: { page: WithdrawalPage | null }) {
  if (page === null || page.withdrawals.length === 0) return null
  return (
    <table class="table">
      <Head columns={['Withdrawal', { num: 'Amount' }, 'Status']} />
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
          <Button class="primary" data-testid="deposit" disabled={value <= 0n} onClick={() => void put()}>
            Deposit
          </Button>
          <Button data-testid="request-withdrawal" disabled={value <= 0n} onClick={() => void take()}>
            Request withdrawal
          </Button>
          <Button data-testid="faucet" onClick={() => void faucet()}>
            Test funds
          </Button>
        </div>
        <PendingWithdrawal page={withdrawals.value} onPaid={refresh} />
      </div>
      <History page={withdrawals.value} />
    </section>
  )
}
