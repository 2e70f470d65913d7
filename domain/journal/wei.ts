/** An amount in wei as a decimal string, possibly negative: journal rows are JSON. */
export type Wei = string
