/** Input for the ticket from other panels. */
import { signal } from '@preact/signals'

/** The price of a level that was clicked, as decimal text; null once the ticket has taken it. */
export const ticketPrice = signal<string | null>(null)
