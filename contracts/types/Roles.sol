// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

// Roles of ExchangeAccess. Role 0 is OpenZeppelin's ADMIN_ROLE, which grants the other roles.
// Announces and lists markets at the bank.
uint64 constant LISTING = 1;
// Changes parameters, operators and price sources of markets.
uint64 constant PARAMETERS = 2;
// Restricts, revokes and cancels without delay; grants nothing.
uint64 constant GUARDIAN = 3;
// Sets the destination of fees, and manages the backstop's capital.
uint64 constant TREASURY = 4;
