package main

import (
	_ "godat/hw/ibv" // what -provider may name, beside loop
	_ "godat/hw/iwarp"
)
