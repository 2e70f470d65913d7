/** Tables of the account: positions, orders, fills, funding, transactions. */
import { useState } from 'preact/hooks'
import { fills, openOrders, positions, transactions } from '../account/live-account.ts'
import { session } from '../account/session.ts'
import { Empty, Tabs } from '../ui/controls.tsx'
import { lazy } from '../ui/lazy.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { FillTable, TransactionTable } from './history-tables.tsx'

const OngoingTable = lazy(() => import('./ongoing-table.tsx').then((module) => module.OngoingTable))

export function Bottom() {
  const [tab, setTab] = useState('positions')
  const items = [
    { id: 'positions', label: 'Positions', count: positions.value.length },
    { id: 'orders', label: 'Open orders', count: openOrders.value.length },
    { id: 'fills', label: 'Fills' },
    { id: 'funding', label: 'Funding' },
    { id: 'transactions', label: 'Transactions' },
  ]
  return (
    <section class="panel bottom" aria-label="Account" data-testid="bottom">
      <Tabs label="Account" items={items} selected={tab} onSelect={setTab} />
      <Scroll label={items.find(({ id }) => id === tab)?.label ?? 'Account'}>
        {session.value === null ? (
          <Empty>
            <a href="/account">Sign in</a> to see your {tab === 'orders' ? 'open orders' : tab}. Everything
            else on this page works without an account.
          </Empty>
        ) : tab === 'positions' || tab === 'orders' ? (
          <OngoingTable tab={tab} />
        ) : tab === 'fills' ? (
          <FillTable fills={fills.value} />
        ) : tab === 'funding' ? (
          <TransactionTable
            list={transactions.value.filter((each) => each.transaction_type === 'funding_payment')}
            empty="No funding payment yet."
          />
        ) : (
          <TransactionTable
            list={transactions.value.filter((each) => each.transaction_type !== 'funding_payment')}
            empty="No transaction yet."
          />
        )}
      </Scroll>
    </section>
  )
}
