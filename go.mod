module petstore

go 1.22
