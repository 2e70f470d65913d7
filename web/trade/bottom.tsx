/** Tables of the account: positions, orders, fills, funding, transactions. */
import { useState } from 'preact/hooks'
import { fills, openOrders, positions, transactions } from '../account/live-account.ts'
import { session } from '../account/session.ts'
import { Empty, Tabs } from '../ui/controls.tsx'
import { CsvButton } from '../ui/csv-button.tsx'
import { lazy, loadTrading } from '../ui/lazy.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { FillTable, TransactionTable } from './history-tables.tsx'

const OngoingTable = lazy(async () => (await loadTrading()).OngoingTable)

type Tab = 'positions' | 'orders' | 'history' | 'fills' | 'funding' | 'transactions'

function Table({ tab }: { tab: Tab }) {
  if (tab === 'fills') return <FillTable fills={fills.value} />
  if (tab === 'positions' || tab === 'orders' || tab === 'history') return <OngoingTable tab={tab} />
  const isFunding = tab === 'funding'
  return (
    <TransactionTable
      list={transactions.value.filter((each) => (each.transaction_type === 'funding_payment') === isFunding)}
      empty={isFunding ? 'No funding payment yet.' : 'No transaction yet.'}
    />
  )
}

export function Bottom() {
  const [tab, setTab] = useState<Tab>('positions')
  const items = [
    { id: 'positions', label: 'Positions', count: positions.value.length },
    { id: 'orders', label: 'Open orders', count: openOrders.value.length },
    { id: 'history', label: 'Order history' },
    { id: 'fills', label: 'Fills' },
    { id: 'funding', label: 'Funding' },
    { id: 'transactions', label: 'Transactions' },
  ] as const
  const name = items.find(({ id }) => id === tab)?.label ?? 'Account'
  const isVisitor = session.value === null
  return (
    <section class="panel bottom" aria-label="Account" data-testid="bottom">
      <Tabs label="Account" items={items} selected={tab} onSelect={setTab}>
        {isVisitor ? null : (
          <CsvButton name={name} onSave={async () => (await loadTrading()).download(tab, name)} />
        )}
      </Tabs>
      <Scroll label={name}>
        {isVisitor ? (
          <Empty>
            <a href="/account">Sign in</a> to see your {name.toLowerCase()}. Everything else on this page
            works without an account.
          </Empty>
        ) : (
          <Table tab={tab} />
        )}
      </Scroll>
    </section>
  )
}
