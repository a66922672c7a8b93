package main

import _ "godat/hw/ibv" // what --provider may name, beside those that every program has
