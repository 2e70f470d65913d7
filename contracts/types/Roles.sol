// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

// Roles of ExchangeAccess. Role 0 is OpenZeppelin's ADMIN_ROLE: it hands out the others, and needs no number here.
// Brings markets to the bank.
uint64 constant LISTING = 1;
// Changes what a market is run with: parameters, operators, price sources.
uint64 constant PARAMETERS = 2;
// Restricts and takes back, at once; can give nothing.
uint64 constant GUARDIAN = 3;
// Says where fees and the backstop's capital go.
uint64 constant TREASURY = 4;
